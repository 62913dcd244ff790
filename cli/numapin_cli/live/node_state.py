"""What one node's NodeAssignment says: as decided, and as read back from the kernel.

Does no I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from numapin_api.conditions.model import Condition, find
from numapin_api.conditions.reasons import ConditionType, Reason
from numapin_api.cpuset import CpuSet
from numapin_api.forms.spec import read_spec
from numapin_api.invalid import invalid_fields
from numapin_api.nodeassignment import NodeAssignmentStatus
from numapin_api.quantity import format_bytes
from numapin_api.schema.plain_assignment import ContainerAssignment
from numapin_api.status.containers import ContainerStatus
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.placement import NumaAmounts

Json = dict[str, Any]

IN_FORCE = "yes"


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node.

    Attributes:
        name: its name.
        view: its NodeAssignment; None if it has none, so that no policy governs it.
        status: the whole status.
        problem: why the object cannot be read; empty if it can.
        numa_nodes: what its NUMA nodes offer and have left; empty if that is not known.
        node_mode: `Paused` or `Released` by the annotation of its Node; empty without it.
    """

    name: str
    view: AssignmentView | None = None
    status: NodeAssignmentStatus = field(default_factory=NodeAssignmentStatus)
    problem: str = ""
    numa_nodes: Mapping[int, NumaAmounts] = field(default_factory=dict)
    node_mode: str = ""

    @classmethod
    def decode(cls, content: Mapping[str, Any]) -> "NodeState":
        """Read a NodeAssignment, of the form of v1alpha1 unless a line of it is wrong."""
        view = AssignmentView.decode(content)
        if faults := read_spec(content).faults:
            return cls(view.name, view, problem=faults[0])
        raw = {key: part for key, part in (content.get("status") or {}).items() if key != _HARDWARE}
        try:
            status = NodeAssignmentStatus.model_validate(raw)
        except ValidationError as error:
            problem = view.problem or str(invalid_fields(error, "status")[0])
            return cls(view.name, view, NodeAssignmentStatus(), problem)
        return cls(view.name, view, status, view.problem or "")

    @property
    def policy(self) -> str:
        """The policy in force; empty if there is none."""
        reference = self.view.spec.policy if self.view else None
        return reference.name if reference else ""

    @property
    def mode(self) -> str:
        """The mode; empty without an assignment."""
        return self.view.spec.mode if self.view else ""

    @property
    def ready(self) -> Condition | None:
        """The condition that says whether the kernel has what the spec says."""
        stalled = find(self.status.conditions, ConditionType.STALLED)
        if stalled is not None and stalled.status == "True":
            return stalled
        return find(self.status.conditions, ConditionType.READY)

    @property
    def is_ready(self) -> bool:
        """Whether the enforcer reports so of the newest assignment."""
        ready = self.ready
        return bool(
            self.view
            and ready
            and ready.type == ConditionType.READY
            and ready.status == "True"
            and self.status.observed_generation == self.view.generation
        )

    @property
    def readiness(self) -> str:
        """`True`, or the reason why not."""
        if self.problem:
            return "unreadable"
        if self.view is None:
            return ""
        if self.is_ready:
            return "True"
        ready = self.ready
        if ready is None or (ready.type == ConditionType.READY and ready.status == "True"):
            return "not reported"
        return ready.reason

    @property
    def exclusive(self) -> int:
        """How many CPUs are exclusive to containers, as decided."""
        return len(self.view.spec.exclusive_cpus) if self.view else 0

    @property
    def refused(self) -> int:
        """How many pods are refused."""
        spec = self.view.spec if self.view else None
        return spec.refused_count if spec else 0

    def in_kernel(self, entry: ContainerAssignment) -> str:
        """What the kernel has of a container of the spec."""
        found = self._reported(entry)
        if found is None:
            return "not running"
        if found.cpus != (entry.cpus or self._shared):
            return f"has {found.cpus}"
        if entry.mems and found.mems != entry.mems:
            return f"memory on {found.mems}"
        if found.exclusive or not entry.exclusive:
            return IN_FORCE
        is_confined = self.ready is not None and self.ready.reason == Reason.INHERITED_AFFINITY
        return "may use a part" if is_confined else "not alone yet"

    def to_json(self) -> Json:
        """The node for scripts."""
        spec = self.view.spec.to_wire() if self.view else {}
        return {
            "node": self.name,
            "policy": self.policy or None,
            "mode": self.mode or None,
            "nodeMode": self.node_mode or None,
            "ready": self.is_ready,
            "reason": self.problem or (self.ready.reason if self.ready else None),
            "message": self.ready.message if self.ready else "",
            "pools": spec.get("pools"),
            "containers": [
                self._container(one) for one in (self.view.spec.containers if self.view else ())
            ],
            "numaNodes": [
                {
                    "numaNode": numa_node,
                    "resources": {name: one._asdict() for name, one in amounts.items()},
                }
                for numa_node, amounts in self.numa_nodes.items()
            ],
            "refused": spec.get("refused") or [],
            "refusedResizes": spec.get("refusedResizes") or [],
            "driftCount": self.status.drift_count,
            "lastPassTime": self.status.last_pass_time,
        }

    def _container(self, entry: ContainerAssignment) -> Json:
        found = self._reported(entry)
        kernel = found.to_wire() if found else None
        return entry.to_wire() | {"inForce": self.in_kernel(entry) == IN_FORCE, "kernel": kernel}

    @property
    def _shared(self) -> CpuSet:
        """What a container without CPUs of its own has: the pool, without what is offline."""
        pools = self.view.spec.pools if self.view else None
        if self.view is None or pools is None:
            return CpuSet()
        topology = self.view.topology
        return pools.shared & topology.online if topology else pools.shared

    def _reported(self, entry: ContainerAssignment) -> ContainerStatus | None:
        return next((one for one in self.status.containers if one.key == entry.key), None)


def memory_text(entry: ContainerAssignment) -> str:
    """The memory that is bound for a container."""
    return ", ".join(
        f"{format_bytes(block.bytes)} {block.resource.removeprefix('memory')}".strip()
        for block in entry.memory
        if block.bytes
    )


_HARDWARE = "topology"
"""Decoded with the view; a status holds it in another form."""
