"""Which CFS limits are removed and restored."""

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment
from numapin_enforcer.cfs_quota.plan import cgroups_without_limit, other_containers, plan_quotas
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.write import Quota
from numapin_enforcer.plan.containment import Desired

POD, EXCLUSIVE = "kubepods/pod1", "kubepods/pod1/" + "a" * 64
SIDECAR = f"{POD}/{'b' * 64}"
TWO, NONE = Quota(200_000), Quota(None)


def test_exclusive_containers_and_their_pods_have_no_limit() -> None:
    one = ContainerAssignment(
        pod_uid="1", namespace="d", pod="p", container="c", cpus=CpuSet([1]), exclusive=True
    )
    cpus, mems = CpuSet([1]), MemSet([0])
    shared = Desired(CpuSet([0]), mems)
    wanted = {
        "kubepods": shared,
        POD: shared,
        EXCLUSIVE: Desired(cpus, mems, one, exclusive=True),
        f"{EXCLUSIVE}/inner": Desired(cpus, mems, one, exclusive=True),
        f"{POD}/{'b' * 64}": shared,
    }
    assert cgroups_without_limit(wanted, CgroupNaming(Driver.CGROUPFS)) == (POD, EXCLUSIVE)


def test_a_container_whose_cpus_a_dra_driver_has_given_keeps_its_limit() -> None:
    one = ContainerAssignment(
        pod_uid="1",
        namespace="d",
        pod="p",
        container="c",
        cpus=CpuSet([1]),
        exclusive=True,
        claimed=True,
    )
    wanted = {EXCLUSIVE: Desired(CpuSet([1]), MemSet([0]), one, exclusive=True)}
    assert cgroups_without_limit(wanted, CgroupNaming(Driver.CGROUPFS)) == ()


def test_a_limit_is_saved_before_it_is_lifted() -> None:
    planned = plan_quotas((POD,), {POD: TWO}, {})
    assert planned.save_before == {POD: TWO}
    assert [str(write.value) for write in planned.writes] == ["max 100000"]
    assert plan_quotas((POD,), {POD: NONE}, planned.save_after).writes == ()


def test_the_containers_beside_exclusive_ones_are_found() -> None:
    """Not the sandbox, once its name is known; it has no limit in any pod."""
    sandbox, unknown = f"{POD}/{'c' * 64}", f"{POD}/{'d' * 64}"
    paths = ("kubepods", POD, EXCLUSIVE, f"{EXCLUSIVE}/inner", SIDECAR, f"{SIDECAR}/inner")
    alone = ("kubepods/pod2", f"kubepods/pod2/{'e' * 64}")
    found = other_containers(
        (*paths, sandbox, unknown, *alone),
        (POD, EXCLUSIVE),
        CgroupNaming(Driver.CGROUPFS),
        {"a" * 64: "main", "b" * 64: "side", "c" * 64: ""},
    )
    assert found == {SIDECAR: True, unknown: False}


@pytest.mark.parametrize("lifted", [{}, {POD: TWO, EXCLUSIVE: TWO}])
def test_the_limit_of_a_pod_stays_where_a_sidecar_would_become_unlimited(
    lifted: dict[str, Quota],
) -> None:
    """As with pod-level resources; also where an earlier version has removed it."""
    found = {POD: TWO, EXCLUSIVE: TWO, SIDECAR: NONE} | dict.fromkeys(lifted, NONE)
    planned = plan_quotas((POD, EXCLUSIVE), found, lifted, {SIDECAR: True})
    after = found | {write.path: write.value for write in planned.writes}
    assert after == {POD: TWO, EXCLUSIVE: NONE, SIDECAR: NONE}
    assert planned.save_after == {EXCLUSIVE: TWO}


@pytest.mark.parametrize(
    ("sidecar", "lifted", "others"),
    [
        pytest.param(TWO, {}, {SIDECAR: True}, id="it has a limit"),
        pytest.param(NONE, {SIDECAR: TWO}, {SIDECAR: True}, id="its limit is restored now"),
        pytest.param(None, {}, {SIDECAR: True}, id="it has ended"),
        pytest.param(NONE, {POD: TWO}, {SIDECAR: False}, id="lifted, and it has no name yet"),
    ],
)
def test_the_limit_of_a_pod_is_lifted_beside_a_sidecar(
    sidecar: Quota | None, lifted: dict[str, Quota], others: dict[str, bool]
) -> None:
    found = {POD: NONE if POD in lifted else TWO, EXCLUSIVE: TWO}
    found |= {SIDECAR: sidecar} if sidecar else {}
    planned = plan_quotas((POD, EXCLUSIVE), found, lifted, others)
    after = found | {write.path: write.value for write in planned.writes}
    assert (after[POD], after[EXCLUSIVE]) == (NONE, NONE)


def test_the_limit_of_a_pod_waits_for_the_name_of_what_has_none() -> None:
    """It may be the sandbox or a sidecar: the runtime says which."""
    planned = plan_quotas((POD,), {POD: TWO, SIDECAR: NONE}, {}, {SIDECAR: False})
    assert planned.writes == ()
