"""What a NodeAssignment's spec says about its containers together."""

from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import ContainerAssignment, NodeAssignmentSpec


def container(name: str, cpus: str, *, exclusive: bool) -> ContainerAssignment:
    return ContainerAssignment(
        pod_uid="1",
        namespace="default",
        pod="p",
        container=name,
        cpus=CpuSet.parse(cpus),
        exclusive=exclusive,
    )


def test_exclusive_cpus_are_those_of_exclusive_containers() -> None:
    listed = (
        container("a", "1", exclusive=True),
        container("b", "3", exclusive=True),
        container("c", "2", exclusive=False),
    )
    assert NodeAssignmentSpec(containers=listed).exclusive_cpus == CpuSet([1, 3])
    assert NodeAssignmentSpec().exclusive_cpus == CpuSet()
