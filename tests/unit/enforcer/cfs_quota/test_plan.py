"""Which CFS limits are removed and restored."""

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import ContainerAssignment
from numapin_enforcer.cfs_quota.plan import cgroups_without_limit, plan_quotas
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.write import Quota
from numapin_enforcer.plan.desired import Desired

POD, EXCLUSIVE = "kubepods/pod1", "kubepods/pod1/" + "a" * 64
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


def test_a_limit_is_saved_before_it_is_lifted() -> None:
    planned = plan_quotas((POD,), {POD: TWO}, {})
    assert planned.save_before == {POD: TWO}
    assert [str(write.value) for write in planned.writes] == ["max 100000"]
    assert plan_quotas((POD,), {POD: NONE}, planned.save_after).writes == ()
