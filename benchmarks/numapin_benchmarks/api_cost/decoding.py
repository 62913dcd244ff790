"""What a list of NodeAssignments costs the operator: CPU time and memory, by layout and decoder.

    python -m numapin_benchmarks.api_cost.decoding [--objects 1000,5000] [--containers 15] [-o FILE]

The lists are read in chunks of 100 objects, as the operator's informer reads them, each case in a
process of its own. `today` is the operator's own decoder: the standard library's JSON and the
models. `plain` makes slotted values of the compact entries. With orjson and msgspec installed (they
are no dependencies: `pip install orjson msgspec`), the same with their parsers.

`--entries 150000` measures the memory of so many containers' entries instead.
"""

import argparse
import gc
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from numapin_api.nodeassignment import ContainerAssignment
from numapin_benchmarks.api_cost.layouts.entries import hardware, placed
from numapin_benchmarks.api_cost.layouts.split import pod_object
from numapin_benchmarks.api_cost.layouts.whole import (
    body,
    changed_status,
    listed,
    mapped,
    settings,
    text,
    today_spec,
    today_status,
)
from numapin_benchmarks.api_cost.values import PARSERS, Plain, parse_line, typed_decoder
from numapin_lab.processes.usage import resident_mib
from numapin_operator.observe.assignments.view import AssignmentView

Json = dict[str, Any]

CHUNK = 100
FORMS = {"lines": listed, "map": mapped, "text": text}
LAYOUTS = ("today", "today-nohardware", *FORMS, "pods")
PARSERS_OF_JSON = ("json", "orjson", "msgspec", "msgspec-typed")


def node_objects(layout: str, number: int, count: int) -> Iterator[Json]:
    """The objects of node `number`; no two nodes have the same pods."""
    step = number * count
    metadata: Json = {"name": f"node-{number:05d}", "uid": f"{number:08x}", "resourceVersion": "7"}
    metadata |= {"generation": 5}
    if layout in FORMS:
        spec = settings(count) | {"containers": FORMS[layout](placed(count, step))}
        yield body(layout, "NodeAssignment", metadata, spec=spec, status=changed_status(count, 4))
    elif layout == "pods":
        yield from (pod_object(layout, one, metadata["name"]) for one in placed(count, step))
    else:
        status = today_status(count, step) | {"observedGeneration": 5}
        if layout == "today":
            machine: Json = hardware(count)
            machine["numaNodes"][0]["memoryBytes"] -= number << 12
            status["topology"] = machine
        yield body(layout, "NodeAssignment", metadata, spec=today_spec(count, step), status=status)


def write_chunks(file: Path, layout: str, nodes: int, count: int) -> None:
    """Write the list of all nodes' objects, a chunk a line."""
    waiting: list[Json] = []
    with file.open("w") as lines:
        for number in range(nodes):
            waiting.extend(node_objects(layout, number, count))
            while len(waiting) >= CHUNK or (waiting and number == nodes - 1):
                lines.write(json.dumps({"items": waiting[:CHUNK]}) + "\n")
                del waiting[:CHUNK]


def loader(parser: str) -> Callable[[bytes], Any]:
    """What makes values of JSON."""
    if parser == "msgspec":
        decode: Callable[[bytes], Any] = importlib.import_module("msgspec.json").decode
        return decode
    loads: Callable[[bytes], Any] = importlib.import_module(parser).loads
    return loads


def decoder(layout: str, parser: str) -> Callable[[bytes], list[Any]]:
    """What makes values of a chunk, as an operator would keep them."""
    if parser == "msgspec-typed":
        return typed_decoder(layout)
    load = loader(parser)
    if layout.startswith("today"):
        return lambda chunk: [AssignmentView.decode(one) for one in load(chunk)["items"]]
    parse = PARSERS[layout]
    return lambda chunk: [parse(one) for one in load(chunk)["items"]]


def read(file: Path, layout: str, parser: str) -> Json:
    """Read a list; its costs."""
    decode, kept = decoder(layout, parser), []
    with file.open("rb") as lines:
        decode(next(lines))  # what is imported or compiled once
        gc.collect()
        memory, begun = resident_mib(os.getpid()), time.process_time()
        lines.seek(0)
        size = 0
        for chunk in lines:
            size += len(chunk)
            kept.extend(decode(chunk))
        seconds = time.process_time() - begun
    gc.collect()
    return {
        "objects": len(kept),
        "cpu_seconds": round(seconds, 3),
        "list_mb": round(size / 1e6, 1),
        "kept_mib": round(resident_mib(os.getpid()) - memory, 1),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - memory, 1),
    }


def entry_values(how: str, count: int) -> list[Any]:
    """The entries of `count` containers, 30 on a node, in one of several forms."""
    made: list[Any] = []
    for start in range(0, count, 30):
        for one in placed(30, start):
            line = one.line(one.number)
            if how == "model":
                made.append(ContainerAssignment.model_validate(_fields(parse_line(line))))
            else:
                made.append(line if how == "line" else parse_line(line))
    return made


def _fields(one: Plain) -> Json:
    block = {"numaNodes": [0], "resource": "memory", "bytes": 1 << 30}
    names = {"podUID": one.uid, "namespace": one.namespace, "pod": one.pod}
    sets = {"cpus": str(one.cpus), "mems": str(one.mems), "exclusive": True, "memory": [block]}
    return names | {"container": one.container} | sets


def keep(how: str, count: int) -> Json:
    """The memory of entries."""
    entry_values(how, 30)
    gc.collect()
    memory = resident_mib(os.getpid())
    kept = entry_values(how, count)
    gc.collect()
    mib = resident_mib(os.getpid()) - memory
    return {"form": how, "entries": len(kept), "kept_mib": round(mib, 1)}


def in_process(*arguments: str) -> Json:
    """The result of this program in a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-m", __spec__.name, "--one", *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    found: Json = json.loads(ended.stdout)
    return found


def compare(options: Any) -> Iterator[Json]:
    """Each layout with each parser that is installed."""
    parsers = [one for one in PARSERS_OF_JSON if find_spec(one.partition("-")[0])]
    for layout in options.layouts.split(","):
        for nodes in options.objects.split(","):
            with tempfile.TemporaryDirectory(prefix="numapin-decoding-") as folder:
                file = Path(folder, "list")
                write_chunks(file, layout, int(nodes), options.containers)
                for parser in parsers:
                    about = {"layout": layout, "nodes": int(nodes), "parser": parser}
                    yield about | in_process(str(file), layout, parser)


def main() -> int:
    """Read the command line and measure."""
    if sys.argv[1:2] == ["--one"]:
        name, *rest = sys.argv[2:]
        found = keep(rest[1], int(rest[0])) if name == "-" else read(Path(name), rest[0], rest[1])
        print(json.dumps(found))
        return 0
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--objects", default="1000,5000", help="nodes, with commas (1000,5000)")
    parser.add_argument("--containers", type=int, default=15, help="exclusive on a node (15)")
    parser.add_argument("--layouts", default=",".join(LAYOUTS), help="with commas (all)")
    parser.add_argument("--entries", type=int, help="measure the memory of so many entries")
    parser.add_argument("-o", "--output", type=Path, help="write the figures there as JSON")
    options = parser.parse_args()
    kept = (in_process("-", str(options.entries), how) for how in ("model", "plain", "line"))
    results = []
    for one in kept if options.entries else compare(options):
        print(one, flush=True)
        results.append(one)
    if options.output:
        options.output.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
