"""One line of JSON as a scenario (a machine, a policy, steps), or what is wrong with it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.hardware.machine_file import MachineFormatError, parse_machine
from numapin_api.invalid import invalid_fields
from numapin_api.topology import Topology
from numapin_cli.inputs.machines import Machines
from numapin_cli.inputs.node_labels import selected_labels
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.observe.pods.resources import is_extended
from numapin_operator.observe.records import NodeView
from numapin_operator.placement import Device, Devices, PodFormatError, PodView, numa_mask

_FIELDS: Final = frozenset({"name", "machine", "policy", "devices", "node", "namespaces", "steps"})
_DEVICE: Final = frozenset({"id", "numaNodes", "healthy"})
_NODE: Final = "node"


class ScenarioError(Exception):
    """A scenario cannot be read; the text names the field and the remedy."""

    def __init__(self, name: str | None, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.name, self.field, self.problem = name, field, problem


@dataclass(frozen=True, slots=True)
class Step:
    """A pod to add, or the UID of a pod to remove."""

    add: PodView | None = None
    remove: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A machine, a policy, and pods that are added and removed in turn.

    Attributes:
        name: of the scenario.
        topology: the machine.
        policy: the policy.
        devices: those that device plug-ins of the machine have registered.
        node: the Node; without one, a node whose labels the policy selects.
        namespaces: the labels of each namespace.
        steps: what happens, in this order.
    """

    name: str
    topology: Topology
    policy: CpuPolicySpec
    devices: Devices
    node: NodeView
    namespaces: Mapping[str, Mapping[str, str]]
    steps: tuple[Step, ...]


def parse_scenario(line: str, machines: Machines) -> Scenario:
    """Read one line.

    Raises:
        ScenarioError: it is not JSON, or a field is missing, unknown or of the wrong form.
    """
    try:
        given = json.loads(line)
    except json.JSONDecodeError as problem:
        raise ScenarioError(None, "", f"not JSON: {problem}; write one object a line") from problem
    if not isinstance(given, dict):
        raise ScenarioError(None, "", "must be a JSON object with name, machine, policy, steps")
    return _Reader(given, machines).read()


class _Reader:
    """Reads one scenario; every error carries the name of the scenario."""

    def __init__(self, given: Mapping[str, Any], machines: Machines) -> None:
        self._given, self._machines = given, machines
        name = given.get("name")
        self._name = name if isinstance(name, str) else None

    def read(self) -> Scenario:
        if self._name is None:
            raise self._error("name", "is missing; give the scenario a name")
        for field in sorted(self._given.keys() - _FIELDS):
            raise self._error(field, "is not a field of a scenario; remove it or correct its name")
        policy, topology = self._policy(), self._topology()
        return Scenario(
            name=self._name,
            topology=topology,
            policy=policy,
            devices=self._devices(topology),
            node=self._node(policy),
            namespaces=self._namespaces(),
            steps=tuple(self._steps()),
        )

    def _devices(self, topology: Topology) -> Devices:
        given = self._given.get("devices", {})
        if not isinstance(given, dict):
            problem = "must be an object: the name of each resource with a list of its devices"
            raise self._error("devices", problem)
        numa_nodes = frozenset(one.id for one in topology.numa_nodes)
        return {
            name: tuple(self._of_resource(name, each, numa_nodes)) for name, each in given.items()
        }

    def _of_resource(self, name: str, given: Any, numa_nodes: frozenset[int]) -> Iterator[Device]:
        field = f"devices.{name}"
        if not is_extended(name):
            problem = "is not the name of an extended resource; write one such as example.com/gpu"
            raise self._error(field, problem)
        if not isinstance(given, list):
            raise self._error(field, 'must be a list of devices, each {"id", "numaNodes"}')
        seen: set[str] = set()
        for index, one in enumerate(given):
            device = self._device(one, f"{field}[{index}]", numa_nodes)
            if device.id in seen:
                problem = f"{device.id} is there already; give each device another id"
                raise self._error(f"{field}[{index}].id", problem)
            seen.add(device.id)
            yield device

    def _device(self, given: Any, field: str, numa_nodes: frozenset[int]) -> Device:
        if not isinstance(given, dict):
            raise self._error(field, 'must be an object: {"id", "numaNodes", "healthy"}')
        for key in sorted(given.keys() - _DEVICE):
            problem = "is not a field of a device; remove it or correct its name"
            raise self._error(f"{field}.{key}", problem)
        name, near = given.get("id"), given.get("numaNodes", [])
        if not isinstance(name, str) or not name:
            raise self._error(f"{field}.id", "is missing or no text; give the device an id")
        if not isinstance(near, list) or not all(type(one) is int for one in near):
            problem = "must be a list of numbers, such as [0]; [] if the device is near none"
            raise self._error(f"{field}.numaNodes", problem)
        if missing := sorted(set(near) - numa_nodes):
            listed = ", ".join(map(str, sorted(numa_nodes)))
            problem = f"the machine has no NUMA node {missing[0]}; it has {listed}"
            raise self._error(f"{field}.numaNodes", problem)
        healthy = given.get("healthy", True)
        if not isinstance(healthy, bool):
            raise self._error(f"{field}.healthy", "must be true or false")
        return Device(name, numa_mask(near), healthy)

    def _node(self, policy: CpuPolicySpec) -> NodeView:
        given = self._given.get("node", {"metadata": {"labels": selected_labels(policy)}})
        if not isinstance(given, dict) or not isinstance(given.get("metadata", {}), dict):
            raise self._error("node", "must be a Node, such as one of kubectl get nodes -o json")
        metadata = {"name": _NODE, "uid": _NODE, **given.get("metadata", {})}
        view = NodeView.decode({**given, "metadata": metadata})
        if view.problem is not None:
            raise self._error("node", view.problem)
        return view

    def _namespaces(self) -> Mapping[str, Mapping[str, str]]:
        given = self._given.get("namespaces", {})
        if not isinstance(given, dict) or not all(isinstance(one, dict) for one in given.values()):
            raise self._error("namespaces", "must be an object: each name with its labels")
        return given

    def _topology(self) -> Topology:
        machine = self._given.get("machine")
        try:
            if isinstance(machine, dict):
                return parse_machine(json.dumps(machine), "")
            if isinstance(machine, str):
                return self._machines.find(machine)
        except MachineFormatError as problem:
            raise self._error("machine", str(problem)) from problem
        except (OSError, ValueError) as problem:
            raise self._error(
                "machine", f"there is no {machine}.json in {self._machines}; see --machines"
            ) from problem
        raise self._error("machine", "must be the name of a machine, or a machine")

    def _policy(self) -> CpuPolicySpec:
        try:
            return CpuPolicySpec.model_validate(self._given.get("policy", {}), extra="forbid")
        except ValidationError as refused:
            raise self._error(*invalid_fields(refused, within="policy")[0]) from refused

    def _steps(self) -> Iterator[Step]:
        steps = self._given.get("steps")
        if not isinstance(steps, list):
            raise self._error("steps", "must be a list of steps")
        present: set[str] = set()
        for index, step in enumerate(steps):
            field = f"steps[{index}]"
            match step:
                case {"add": dict() as pod, **rest} if not rest:
                    view = self._pod(pod, field)
                    if view.uid in present:
                        raise self._error(
                            field, f"pod {view.uid} is there already; remove it first"
                        )
                    present.add(view.uid)
                    yield Step(add=view)
                case {"remove": str() as uid, **rest} if not rest:
                    present.discard(uid)
                    yield Step(remove=uid)
                case _:
                    raise self._error(field, 'must be {"add": <Pod>} or {"remove": "<pod uid>"}')

    def _pod(self, pod: dict[str, Any], field: str) -> PodView:
        try:
            return parse_pod(pod)
        except PodFormatError as refused:
            raise self._error(f"{field}.add.{refused.field}", refused.problem) from refused

    def _error(self, field: str, problem: str) -> ScenarioError:
        return ScenarioError(self._name, field, problem)
