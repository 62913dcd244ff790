"""`numapin simulate`: what the kubelet, or numapin, answers to scenarios; no cluster is needed."""

import json
import sys
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from numapin_cli.as_operator import answer_as_operator
from numapin_cli.inputs.machines import Machines
from numapin_cli.inputs.scenario import Scenario, ScenarioError, parse_scenario
from numapin_cli.subcommand import CommandError
from numapin_operator.placement import (
    KUBELET,
    ContainerAllocation,
    KubeletQuirks,
    Node,
    PlacementError,
    PodAllocation,
    PolicyError,
    resolve,
)

_PROGRESS_SECONDS: Final = 0.2


def run(options: Namespace) -> int:
    """Carry it out; returns the exit status."""
    machines = Machines(options.machines)
    answer_to = answer_as_operator if options.as_operator else answer
    progress = _Progress(sys.stderr)
    bad = 0
    with _opened(options.file) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                scenario = parse_scenario(line, machines)
                given = answer_to(scenario)
            except ScenarioError as problem:
                bad += 1
                source = options.file or "standard input"
                progress.clear()
                print(f"{source}: line {number}: {problem}", file=sys.stderr)
                given = {"name": problem.name, "error": str(problem)}
            print(json.dumps(given), flush=True)
            progress.tick()
    progress.clear()
    return 1 if bad else 0


def answer(scenario: Scenario, quirks: KubeletQuirks = KUBELET) -> dict[str, Any]:
    """The kubelet's answer to a scenario; if the policy cannot work on the machine, the reason."""
    try:
        policy = resolve(scenario.topology, scenario.policy, quirks)
    except PolicyError as problem:
        return {"name": scenario.name, "error": str(problem)}
    node = Node(policy, scenario.devices)
    return {"name": scenario.name, "steps": list(_steps(node, scenario))}


def _steps(node: Node, scenario: Scenario) -> Iterator[dict[str, Any]]:
    for step in scenario.steps:
        if step.add is None:
            node.release(step.remove)
            yield {"shared": str(node.shared)}
            continue
        given: dict[str, Any] = {"admitted": True}
        if node.wants(step.add):
            try:
                given |= _containers(node.place(step.add))
            except PlacementError as refused:
                given = {"admitted": False, "reason": refused.reason, "message": str(refused)}
        yield given | {"shared": str(node.shared)}


def _containers(allocation: PodAllocation) -> dict[str, Any]:
    containers = {
        container.name: {
            "cpus": str(container.cpu_set),
            "mems": str(container.mem_set),
            "memory": [
                {
                    "numaNodes": list(block.node_ids),
                    "resource": block.resource,
                    "bytes": block.size_bytes,
                }
                for block in container.memory
            ],
        }
        | _devices(container)
        for container in allocation.containers
        if container.cpus or container.memory or container.devices
    }
    return {"containers": containers} if containers else {}


def _devices(container: ContainerAllocation) -> dict[str, Any]:
    devices = {grant.resource: list(grant.ids) for grant in container.devices}
    return {"devices": devices} if devices else {}


@contextmanager
def _opened(file: Path | None) -> Iterator[Iterable[str]]:
    if file is None:
        yield sys.stdin
        return
    try:
        lines = file.open(encoding="utf-8")
    except OSError as problem:
        raise CommandError(f"{file}: {problem.strerror}; give a file of scenarios") from problem
    with lines:
        try:
            yield lines
        except UnicodeDecodeError as problem:
            raise CommandError(f"{file}: not UTF-8 text; give a file of scenarios") from problem


class _Progress:
    """Shows how many scenarios are answered, on a terminal to which no answers go."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream if stream.isatty() and not sys.stdout.isatty() else None
        self._begun = self._shown = time.monotonic()
        self._count = 0

    def tick(self) -> None:
        """Count one more answer."""
        self._count += 1
        now = time.monotonic()
        if self._stream is not None and now - self._shown > _PROGRESS_SECONDS:
            self._shown = now
            rate = self._count / (now - self._begun)
            self._stream.write(f"\r{self._count} scenarios, {rate:.0f} a second ")
            self._stream.flush()

    def clear(self) -> None:
        """Clear the line."""
        if self._stream is not None:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
