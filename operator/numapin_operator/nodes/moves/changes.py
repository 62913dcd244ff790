"""The containers that a write begins or ends to move, and in words. Does no I/O."""

from collections.abc import Iterator
from typing import NamedTuple

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import ContainerAssignment, NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_operator.placement import finished, is_giving_back


class Change(NamedTuple):
    """The entry of a container before and after a write of its assignment."""

    before: ContainerAssignment
    after: ContainerAssignment

    @property
    def begins(self) -> bool:
        """Whether the container begins to move."""
        return self.before.moving is None and self.after.moving is not None

    @property
    def ends(self) -> bool:
        """Whether its move has come to its end."""
        return self.before.moving is not None and self.after.moving is None


def changes(
    before: NodeAssignmentSpec | None, after: NodeAssignmentSpec | None
) -> Iterator[Change]:
    """The containers of which a write begins or ends the move.

    One that only gives CPUs back is told like any that is resized.
    """
    known = {one.key: one for one in (before.containers if before else ())}
    for one in after.containers if after else ():
        earlier = known.get(one.key)
        change = Change(earlier, one) if earlier is not None else None
        if change is None or is_giving_back(change.before) or is_giving_back(one):
            continue
        if change.begins or change.ends:
            yield change


def planned_moves(
    before: NodeAssignmentSpec | None, after: NodeAssignmentSpec | None, topology: Topology | None
) -> Iterator[str]:
    """A line for each container that begins to move, for administrators."""
    for change in changes(before, after):
        if change.begins:
            one = change.after
            name = f"{one.namespace}/{one.pod} {one.container}"
            yield f"moves {name} {where(change)} {why(change, topology, is_named=True)}"


def where(change: Change) -> str:
    """From which CPUs to which, for people."""
    return f"from CPUs {change.before.cpus} to {finished(change.after).cpus}"


def why(change: Change, topology: Topology | None, *, is_named: bool) -> str:
    """For what it moves, for people; `is_named` is whether they may know the other pod's name."""
    moving = change.after.moving
    assert moving is not None
    if moving.pod is None:
        return "as the policy would place it now"
    who = f"{moving.namespace}/{moving.pod}" if is_named else "a pod of another namespace"
    of_cpu = {cpu.id: cpu.numa_node for cpu in topology.cpus} if topology else {}
    left = CpuSet(of_cpu[cpu] for cpu in moving.leaving if cpu in of_cpu)
    return f"so that {who} fits" + (f" on NUMA node {left}" if len(left) == 1 else "")
