import errno
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import ContainerAssignment
from numapin_enforcer.cfs_quota.lifted import FILE_NAME, LiftedQuotas
from numapin_enforcer.cfs_quota.plan import cgroups_without_limit, plan_quotas
from numapin_enforcer.cgroups.naming import Driver, Layout
from numapin_enforcer.cgroups.tree import CgroupRefusedError, Quota, Version, Write
from numapin_enforcer.plan.desired import Desired
from support.fakes.kernel import KernelModel

POD, OWNER = "kubepods/pod1", "kubepods/pod1/" + "a" * 64
TWO, NONE = Quota(200_000), Quota(None)


def node(**limits: Quota) -> KernelModel:
    """A pod and its container, with the limits that the kubelet gave them."""
    model = KernelModel(Version.V2, CpuSet([0, 1]), MemSet([0]))
    for path, name in ((POD, "pod"), (OWNER, "owner")):
        model.make(path)
        model.groups[path].quota = limits.get(name, TWO)
    return model


def limits(model: KernelModel) -> dict[str, Quota]:
    return {path: model.groups[path].quota for path in (POD, OWNER) if path in model.groups}


def test_the_limits_of_owners_and_their_pods_are_lifted() -> None:
    one = ContainerAssignment(
        pod_uid="1", namespace="d", pod="p", container="c", cpus=CpuSet([1]), exclusive=True
    )
    cpus, mems = CpuSet([1]), MemSet([0])
    shared = Desired(CpuSet([0]), mems)
    wanted = {
        "kubepods": shared,
        POD: shared,
        OWNER: Desired(cpus, mems, one, exclusive=True),
        f"{OWNER}/inner": Desired(cpus, mems, one, exclusive=True),
        f"{POD}/{'b' * 64}": shared,
    }
    assert cgroups_without_limit(wanted, Layout(Driver.CGROUPFS)) == (POD, OWNER)


def test_a_limit_is_lifted_and_given_back(tmp_path: Path) -> None:
    model = node(pod=Quota(350_000), owner=TWO)
    keeper = LiftedQuotas(model, "kubepods", tmp_path)
    assert keeper.run((POD, OWNER)).complete
    assert limits(model) == {POD: NONE, OWNER: NONE}
    assert keeper.run(()).complete
    assert limits(model) == {POD: Quota(350_000), OWNER: TWO}


def test_what_was_lifted_is_known_after_a_restart(tmp_path: Path) -> None:
    model = node()
    LiftedQuotas(model, "kubepods", tmp_path).run((POD, OWNER))
    LiftedQuotas(model, "kubepods", tmp_path).run((POD, OWNER))
    LiftedQuotas(model, "kubepods", tmp_path).run(())
    assert limits(model) == {POD: TWO, OWNER: TWO}


def test_who_had_no_limit_gets_none_back(tmp_path: Path) -> None:
    model = node(owner=NONE)
    keeper = LiftedQuotas(model, "kubepods", tmp_path)
    keeper.run((POD, OWNER))
    keeper.run(())
    assert limits(model) == {POD: TWO, OWNER: NONE}


def test_a_limit_that_somebody_set_meanwhile_stays(tmp_path: Path) -> None:
    model = node()
    keeper = LiftedQuotas(model, "kubepods", tmp_path)
    keeper.run((POD, OWNER))
    model.groups[OWNER].quota = Quota(50_000)
    keeper.run(())
    assert limits(model)[OWNER] == Quota(50_000)


def test_a_limit_that_comes_back_is_lifted_again_and_the_newer_one_given_back(
    tmp_path: Path,
) -> None:
    model = node()
    keeper = LiftedQuotas(model, "kubepods", tmp_path)
    keeper.run((POD, OWNER))
    model.groups[OWNER].quota = Quota(300_000)
    keeper.run((POD, OWNER))
    assert limits(model)[OWNER] == NONE
    keeper.run(())
    assert limits(model)[OWNER] == Quota(300_000)


def test_nothing_is_kept_of_a_cgroup_that_is_gone(tmp_path: Path) -> None:
    model = node()
    keeper = LiftedQuotas(model, "kubepods", tmp_path)
    keeper.run((POD, OWNER))
    model.vanish(POD)
    assert keeper.run((POD, OWNER)).complete
    assert (tmp_path / FILE_NAME).read_text() == "{}"


def test_what_could_not_be_given_back_is_tried_again(tmp_path: Path) -> None:
    model = node()
    keeper = LiftedQuotas(model, "kubepods", tmp_path)
    keeper.run((POD, OWNER))

    def refuse(write: Write) -> None:
        raise CgroupRefusedError(write.path, str(write.value), errno.EINVAL, "injected")

    model.before_write = refuse
    assert len(keeper.run(()).failed) == 2
    model.before_write = lambda write: None
    assert LiftedQuotas(model, "kubepods", tmp_path).run(()).complete
    assert limits(model) == {POD: TWO, OWNER: TWO}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"a": 1}',
        '{"kubepods/pod1": [1]}',
        '{"kubepods/pod1": [null, 100000]}',
        '{"kubepods/pod1": ["200000", 100000]}',
        '{"kubepods/pod1": [0, 100000]}',
        '{"kubepods/pod1": [200000, 0]}',
        "\xff",
    ],
)
def test_a_damaged_memory_is_as_none_and_told(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE_NAME).write_text(text, encoding="latin-1")
    model = node(pod=NONE)
    assert LiftedQuotas(model, "kubepods", tmp_path).run(()).complete
    assert limits(model) == {POD: NONE, OWNER: TWO}
    assert "which CFS limits were lifted is not known any more" in caplog.text


def test_the_first_start_has_nothing_to_tell(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    LiftedQuotas(node(), "kubepods", tmp_path)
    assert caplog.text == ""


@pytest.mark.parametrize("path", ["kubepods.slice/pod1", "kubepods/../pod1", "kubepodsx", "/x"])
def test_what_is_outside_the_tree_is_not_touched(tmp_path: Path, path: str) -> None:
    """Another driver's tree is named nearly alike, and its limits may be remembered still."""
    (tmp_path / FILE_NAME).write_text(f'{{"{path}": [100000, 100000], "{POD}": [50000, 100000]}}')
    model = node(pod=NONE)
    keeper = LiftedQuotas(model, "kubepods", tmp_path)
    assert keeper.remembered == {POD: Quota(50_000)}
    assert keeper.run(()).complete
    assert limits(model)[POD] == Quota(50_000)


def test_a_kill_between_remembering_and_lifting_loses_nothing(tmp_path: Path) -> None:
    """Killed before the first write, and killed before the last was forgotten."""
    model = node()

    def kill(write: Write) -> None:
        raise KeyboardInterrupt

    model.before_write = kill
    with pytest.raises(KeyboardInterrupt):
        LiftedQuotas(model, "kubepods", tmp_path).run((POD, OWNER))
    model.before_write = lambda write: None
    assert LiftedQuotas(model, "kubepods", tmp_path).remembered == {POD: TWO, OWNER: TWO}
    LiftedQuotas(model, "kubepods", tmp_path).run((POD, OWNER))
    assert limits(model) == {POD: NONE, OWNER: NONE}
    model.after_write = kill
    with pytest.raises(KeyboardInterrupt):
        LiftedQuotas(model, "kubepods", tmp_path).run(())
    model.after_write = lambda write: None
    assert LiftedQuotas(model, "kubepods", tmp_path).run(()).complete
    assert limits(model) == {POD: TWO, OWNER: TWO}
    assert (tmp_path / FILE_NAME).read_text() == "{}"


def test_a_folder_where_the_memory_belongs_lifts_nothing(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    model = node()
    with pytest.raises(IsADirectoryError):
        LiftedQuotas(model, "kubepods", tmp_path).run((POD, OWNER))
    assert limits(model) == {POD: TWO, OWNER: TWO}


def test_a_limit_is_remembered_before_it_is_lifted() -> None:
    planned = plan_quotas((POD,), {POD: TWO}, {})
    assert planned.remember == {POD: TWO}
    assert [str(write.value) for write in planned.writes] == ["max 100000"]
    assert plan_quotas((POD,), {POD: NONE}, planned.keep).writes == ()
