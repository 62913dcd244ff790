"""Compare answers with what the kubelet's own managers answered.

usage: compare.py FILE.jsonl.gz... -- COMMAND...

COMMAND reads scenarios on standard input, one a line, and writes one answer a line;
`--machines DIR` is appended to it. Prints a line for each file and every difference; exits 1 if
there is any.
"""

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from numapin_api.cpuset import CpuSet

FOLDER: Final = Path(__file__).parent
MACHINES: Final = FOLDER / "machines"
FILES: Final = tuple(sorted(FOLDER.glob("*.jsonl.gz")))

Json = dict[str, Any]
Device = tuple[str, str]
"""Resource and id."""


def read_scenarios(file: Path) -> list[Json]:
    """The scenarios of a file, with what is expected of each."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def asked(scenario: Json) -> str:
    """A scenario as it is put to a command: one line, without the expected answer."""
    return json.dumps({k: v for k, v in scenario.items() if not k.startswith("expect")}) + "\n"


def difference(scenario: Json, answer: Json) -> str | None:
    """The first difference between what is expected and an answer; None where there is none."""
    if answer.get("name") != scenario["name"]:
        return f"this answers {answer.get('name')!r}"
    if scenario.get("expectError"):
        return None if answer.get("error") else "expected an error"
    if answer.get("error"):
        return f"error: {answer['error']}"
    steps = answer.get("steps") or []
    return _difference_in_steps(scenario["expect"], steps) or _difference_in_devices(
        scenario, steps
    )


def _difference_in_steps(expected: list[Json], steps: list[Json]) -> str | None:
    if len(steps) != len(expected):
        return f"{len(steps)} steps, expected {len(expected)}"
    for number, (want, have) in enumerate(zip(expected, steps, strict=True)):
        if _facts(want) != _facts(have):
            return f"step {number}: want {json.dumps(want)}, have {json.dumps(have)}"
        if want.get("reason") not in {None, "Other", have.get("reason")}:
            return f"step {number}: reason {have.get('reason')}, expected {want['reason']}"
    return None


def _difference_in_devices(scenario: Json, steps: list[Json]) -> str | None:
    """The first device that is not what was recorded, or cannot be given."""
    there = {
        (resource, one["id"]): one
        for resource, each in scenario.get("devices", {}).items()
        for one in each
    }
    held: dict[str, set[Device]] = {}
    for number, (step, want, have) in enumerate(
        zip(scenario["steps"], scenario["expect"], steps, strict=False)
    ):
        held.pop(step.get("remove", ""), None)
        given = _devices(have)
        for name in sorted({*given, *(want.get("containers") or {})}):
            asked = (want.get("containers") or {}).get(name, {})
            if found := _wrong_devices(given.get(name, []), asked, there):
                return f"step {number}: {name}: {found}"
        if "add" in step and (twice := _held_twice(step["add"], given, held)):
            return f"step {number}: {twice}"
    return None


def _devices(step: Json) -> dict[str, list[Device]]:
    """The devices of each container."""
    return {
        name: [(resource, one) for resource, ids in one_of["devices"].items() for one in ids]
        for name, one_of in (step.get("containers") or {}).items()
        if one_of.get("devices")
    }


def _wrong_devices(given: list[Device], want: Json, there: dict[Device, Json]) -> str | None:
    """How a container's devices differ from its record: ids, else NUMA nodes, else a number."""
    if len(set(given)) != len(given) or not all(
        one in there and there[one].get("healthy", True) for one in given
    ):
        return f"{given} are not different, existing, healthy devices"
    found: Json = {"devices": {}, "deviceNUMANodes": {}, "deviceCount": {}}
    for resource, name in given:
        found["devices"].setdefault(resource, []).append(name)
        near = sorted(there[resource, name]["numaNodes"])
        found["deviceNUMANodes"].setdefault(resource, []).append(near)
        found["deviceCount"][resource] = found["deviceCount"].get(resource, 0) + 1
    recorded = {resource for kind in found for resource in want.get(kind, {})}
    if recorded != found["deviceCount"].keys():
        return f"devices of {sorted(found['deviceCount'])}, expected of {sorted(recorded)}"
    for kind, of in found.items():
        for resource, expected in want.get(kind, {}).items():
            has = of[resource] if kind == "deviceCount" else sorted(of[resource])
            if has != expected:
                return f"{resource}: {kind} {has}, expected {expected}"
    return None


def _held_twice(pod: Json, given: dict[str, list[Device]], held: dict[str, set[Device]]) -> str:
    """The devices that two pods hold, or two containers that run at once; empty for none.

    `held` are those of each pod; this one is added.
    """
    taken = {one for each in held.values() for one in each}
    mine: set[Device] = set()
    inits = pod["spec"].get("initContainers") or []
    for container in [*inits, *pod["spec"]["containers"]]:
        own = set(given.get(container["name"], ()))
        if own & taken:
            return f"{container['name']}: {sorted(own & taken)} are in use"
        mine |= own
        if container not in inits or container.get("restartPolicy") == "Always":
            taken |= own
    held[pod["metadata"]["uid"]] = mine
    return ""


def _facts(step: Json) -> tuple[object, ...]:
    containers = {
        name: (
            CpuSet.parse(given.get("cpus") or ""),
            CpuSet.parse(given.get("mems") or ""),
            sorted(
                (tuple(block["numaNodes"]), block["resource"], block["bytes"])
                for block in given.get("memory") or []
            ),
        )
        for name, given in (step.get("containers") or {}).items()
        if given.get("cpus") or given.get("mems") or given.get("memory")
    }
    return step.get("admitted"), containers, CpuSet.parse(step["shared"])


def _differences(file: Path, command: list[str]) -> Iterator[str]:
    scenarios = read_scenarios(file)
    run = subprocess.run(
        [*command, "--machines", str(MACHINES)],
        input="".join(map(asked, scenarios)),
        capture_output=True,
        text=True,
        check=False,
    )
    answers = {given.get("name"): given for given in map(json.loads, run.stdout.splitlines())}
    for scenario in scenarios:
        if found := difference(scenario, answers.get(scenario["name"], {})):
            yield f"{scenario['name']}: {found}"
    if run.returncode:
        yield f"exit status {run.returncode}: {run.stderr.strip()[-300:]}"


def main(arguments: list[str]) -> int:
    """Compare every file with the command's answers."""
    split = arguments.index("--")
    bad = 0
    for name in arguments[:split]:
        found = list(_differences(Path(name), arguments[split + 1 :]))
        bad += len(found)
        sys.stdout.write(f"{Path(name).name}: {len(found)} differences\n")
        sys.stdout.writelines(f"  {line}\n" for line in found)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
