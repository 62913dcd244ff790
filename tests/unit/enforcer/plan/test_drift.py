"""External cpuset changes: described."""

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment
from numapin_enforcer.plan.drift import Cause, Drift


def _drift(path: str, container: ContainerAssignment | None = None) -> Drift:
    mems = MemSet((0,))
    return Drift(path, (CpuSet((0,)), mems), (CpuSet((1,)), mems), container)


def test_a_drift_names_the_sets_found_and_desired() -> None:
    drift = Drift("p", (CpuSet(), MemSet((1,))), (CpuSet((1,)), MemSet((0,))))
    assert str(drift) == "cgroup p had cpus none instead of 1 and mems 1 instead of 0; reverted"


def test_a_drift_is_named_by_container_or_cgroup() -> None:
    one = ContainerAssignment(
        pod_uid="1", namespace="d", pod="p", container="c", cpus=CpuSet([1]), exclusive=True
    )
    assert str(_drift("a", one)).startswith("container d/p/c had cpus 0 instead of 1;")


def _found(cpus: str, meant: str, *, is_exclusive: bool = False, mems: str = "0") -> Drift:
    """A drift on a machine whose CPUs 2-3 are exclusive."""
    sets = (CpuSet.parse(cpus), MemSet.parse(mems)), (CpuSet.parse(meant), MemSet([0]))
    return Drift("p", *sets, exclusive_cpus=CpuSet([2, 3]), is_exclusive=is_exclusive)


@pytest.mark.parametrize(
    ("drift", "cause"),
    [
        (_found("0-2", "0-1"), Cause.INTRUSION),
        (_found("2-3", "2", is_exclusive=True), Cause.INTRUSION),
        (_found("0", "2-3", is_exclusive=True), Cause.OWNER_MOVED),
        (_found("2", "2-3", is_exclusive=True), Cause.OWNER_MOVED),
        (_found("0", "0-1"), Cause.STRAYED),
        (_found("4", "0-1"), Cause.STRAYED),
        (_found("0-1", "0-1", mems="1"), Cause.MEMORY),
    ],
)
def test_a_drift_has_a_cause(drift: Drift, cause: Cause) -> None:
    assert drift.cause is cause
