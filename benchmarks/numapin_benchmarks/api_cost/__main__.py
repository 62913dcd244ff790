"""What a placed pod costs the API server and etcd, in several layouts of a NodeAssignment.

    python -m numapin_benchmarks.api_cost [--containers 15,125,250] [--layouts today,text] [-o FILE]

A real etcd and kube-apiserver; nothing else runs. Pods are created, then in each layout and for
each number of exclusive containers on a node, the writes of a placed pod are made again and again:
each adds a container and drops the oldest one. The CPU time is that of the API server's process,
less what it uses when idle, so other programs of the machine change it little. A collection of its
garbage takes as long as some hundred writes, so fewer than 1,000 writes of a small object say
little. The operator's and
the enforcer's watch are open, as always. `--watchers N` opens N more on other nodes.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from numapin_benchmarks.api_cost.layouts import kinds
from numapin_benchmarks.api_cost.layouts.builtin import (
    LEASES,
    annotate_pod,
    bind_pod,
    config_map,
    create_event,
    create_pod,
    create_unbound_pod,
    lease,
    patch_lease,
    renew_lease,
    run_pod,
)
from numapin_benchmarks.api_cost.layouts.split import apart, for_each_pod, recent, sharded
from numapin_benchmarks.api_cost.layouts.whole import (
    NODE,
    Call,
    Layout,
    Write,
    compact,
    slim,
    today,
)
from numapin_benchmarks.api_cost.rows import Measured, details, table
from numapin_benchmarks.api_cost.server import Api, connect, control_plane
from numapin_benchmarks.surroundings import machine, progress
from numapin_client.transport.timeouts import Timeouts

LAYOUTS: dict[str, Callable[[str], Layout]] = {
    "today": lambda name: today(name, kinds.today(name)),
    "today-norules": lambda name: today(name, kinds.without_rules(name)),
    "today-noschema": lambda name: today(name, kinds.without_schema(name)),
    "today-unmanaged": lambda name: today(name, kinds.today(name), managed=False),
    "today-slim": lambda name: slim(today(name, kinds.today(name), managed=False)),
    "today-nohardware": lambda name: today(name, kinds.today(name), hardware_in_status=False),
    "lines": lambda name: compact(name, name),
    "lines-checked": lambda name: compact(name, name),
    "lines-unmanaged": lambda name: compact(name, "lines", managed=False),
    "map": lambda name: compact(name, name),
    "text": lambda name: compact(name, name),
    "text-unmanaged": lambda name: compact(name, "text", managed=False),
    "lines-slim": lambda name: slim(compact(name, "lines", managed=False)),
    "recent": lambda name: slim(recent(name)),
    "apart": apart,
    "apart-unmanaged": lambda name: apart(name, managed=False),
    "apart-slim": lambda name: slim(apart(name, managed=False)),
    "pods": lambda name: for_each_pod(name, own_status=True),
    "pods-header": lambda name: for_each_pod(name, own_status=False),
    "shards": sharded,
    "configmap": config_map,
}

USUAL = ("today", "lines", "apart-slim", "pods")


def other_nodes(layout: Layout, count: int) -> list[tuple[str, str]]:
    """The watches of the enforcers of other nodes, which select as that of the node does."""
    path, query = layout.watched[-1]
    return [(path, query.replace(NODE, f"other-{number:05d}")) for number in range(count)]


async def measure_others(api: Api, steps: range, options: Any) -> list[Measured]:
    """The creation of a pod, and writes that do not depend on the node.

    `cluster` are those that each pod takes without numapin.
    """
    writes = (
        Write("base", "POST of a pod", create_pod),
        Write("cluster", "POST of a pod without a node", create_unbound_pod),
        Write("cluster", "POST of its binding", bind_pod),
        Write("cluster", "patch of its status, as by a kubelet", run_pod),
        Write("other", "merge patch of a pod's annotation", annotate_pod),
        Write("event", "POST of an Event", create_event),
        Write("heartbeat", "PUT of a Lease", renew_lease),
        Write("patched", "merge patch of a Lease", patch_lease),
        Write("handshake", "PUT of a Lease, new connection", renew_lease),
    )
    found, watchers = [], options.watchers
    own = f"fieldSelector=spec.nodeName={NODE}"
    others = [("/api/v1/pods", own.replace(NODE, f"other-{one:05d}")) for one in range(watchers)]
    async with api.watched([("/api/v1/pods", ""), ("/api/v1/pods", own), *others]):
        for write in writes:
            if options.who and write.who not in {"base", *options.who}:
                continue
            async with connect(api.plane, Timeouts(unused_seconds=0)) as fresh:
                fresh.stored = api.stored
                cost = await (fresh if write.who == "handshake" else api).measure(write, steps)
            found.append(Measured("kubernetes", 0, write.who, write.what, watchers, cost))
            progress(f"{write.what}: {cost.api_ms:.2f} ms")
    return found


async def measure_layout(api: Api, layout: Layout, count: int, options: Any) -> list[Measured]:
    """All writes of a layout on a node with so many containers; deletes its objects."""
    for call in layout.begin(count):
        await api.send(call)
    if options.show:
        print(await asyncio.to_thread(shown, api, layout), flush=True)
    found, watchers = [], options.watchers
    async with api.watched([*layout.watched, *other_nodes(layout, watchers)]):
        for write in layout.writes(count):
            if options.who and write.who not in options.who:
                continue
            cost = await api.measure(write, range(1, options.writes + 1))
            found.append(Measured(layout.name, count, write.who, write.what, watchers, cost))
            progress(f"{layout.name} {count} {write.what}: {cost.api_ms:.2f} ms")
    for path in dict(layout.watched):
        await api.send(Call("DELETE", path, {}))
    return found


def shown(api: Api, layout: Layout) -> str:
    """The objects of a layout as kubectl prints them."""
    kubectl, names = api.plane.kubectl, [one["metadata"]["name"] for one in layout.kinds]
    forms = ("wide", "yaml")
    return "\n".join(kubectl("get", name, "-o", form) for name in names for form in forms)


async def measure(options: Any) -> list[Measured]:
    """Everything, in one control plane; pods are created before each layout."""
    found: list[Measured] = []
    with control_plane() as plane:
        async with connect(plane) as api:
            await api.send(Call("POST", LEASES, lease("2026-01-01T02:00:00.000000Z")))
            layouts = [LAYOUTS[name](name) for name in options.layouts]
            for layout in layouts:
                await api.serve(layout)
            await asyncio.sleep(options.settle)
            for number, layout in enumerate(layouts):
                steps = range(1 + number * options.writes, 1 + (number + 1) * options.writes)
                found += await measure_others(api, steps, options)
                for count in options.containers:
                    found += await measure_layout(api, layout, count, options)
                if options.output:
                    options.output.write_text(document(found))
    return found


def document(found: list[Measured]) -> str:
    """The results as JSON."""
    written = {"machine": machine(), "writes": [asdict(one) for one in found]}
    return json.dumps(written, indent=1) + "\n"


def words(text: str) -> list[str]:
    """A list with commas."""
    return [one for one in text.split(",") if one]


def build_parser() -> argparse.ArgumentParser:
    """Layouts, sizes and files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--containers", type=words, default=["15", "125", "250"], help="on a node (15,125,250)")
    add("--layouts", type=words, default=list(USUAL), help=f"of {', '.join(LAYOUTS)}")
    add("--who", type=words, default=[], help="only the writes of these, such as operator (all)")
    add("--writes", type=int, default=1000, help="how often each is made (1000)")
    add("--watchers", type=int, default=0, help="enforcers of other nodes that watch (0)")
    add("--settle", type=float, default=20.0, help="seconds until the API server is calm (20)")
    add("--show", action="store_true", help="print the objects as kubectl does")
    add("-o", "--output", type=Path, help="write the figures there as JSON")
    return parser


def main() -> int:
    """Measure, and print what was measured."""
    parser = build_parser()
    options = parser.parse_args()
    options.containers = [int(one) for one in options.containers]
    if strange := set(options.layouts) - LAYOUTS.keys():
        parser.error(f"no such layout: {', '.join(sorted(strange))}")
    found = asyncio.run(measure(options))
    print("\n".join((*details(found), *table(found))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
