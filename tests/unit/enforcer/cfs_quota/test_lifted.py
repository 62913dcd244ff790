"""Limits are removed and restored, and none is lost."""

import errno
import os
import stat
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_campaigns.histories.kernel.model import KernelModel
from numapin_enforcer.cfs_quota.lifted import FILE_NAME, LiftedQuotas
from numapin_enforcer.cgroups.errors import CgroupRefusedError
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.write import Quota, Write

POD, EXCLUSIVE = "kubepods/pod1", "kubepods/pod1/" + "a" * 64
TWO, NONE = Quota(200_000), Quota(None)


def node(**limits: Quota) -> KernelModel:
    """A pod and its container, with the limits that the kubelet gave them."""
    model = KernelModel(Version.V2, CpuSet([0, 1]), MemSet([0]))
    for path, name in ((POD, "pod"), (EXCLUSIVE, "exclusive")):
        model.make(path)
        model.groups[path].quota = limits.get(name, TWO)
    return model


def limits(model: KernelModel) -> dict[str, Quota]:
    return {path: model.groups[path].quota for path in (POD, EXCLUSIVE) if path in model.groups}


def test_a_limit_is_lifted_and_restored(tmp_path: Path) -> None:
    model = node(pod=Quota(350_000), exclusive=TWO)
    quotas = LiftedQuotas(model, "kubepods", tmp_path)
    assert quotas.update((POD, EXCLUSIVE)).complete
    assert limits(model) == {POD: NONE, EXCLUSIVE: NONE}
    assert quotas.update(()).complete
    assert limits(model) == {POD: Quota(350_000), EXCLUSIVE: TWO}


def test_lifted_limits_are_known_after_a_restart(tmp_path: Path) -> None:
    model = node()
    LiftedQuotas(model, "kubepods", tmp_path).update((POD, EXCLUSIVE))
    LiftedQuotas(model, "kubepods", tmp_path).update((POD, EXCLUSIVE))
    LiftedQuotas(model, "kubepods", tmp_path).update(())
    assert limits(model) == {POD: TWO, EXCLUSIVE: TWO}


def test_a_cgroup_without_a_limit_gets_none(tmp_path: Path) -> None:
    model = node(exclusive=NONE)
    quotas = LiftedQuotas(model, "kubepods", tmp_path)
    quotas.update((POD, EXCLUSIVE))
    quotas.update(())
    assert limits(model) == {POD: TWO, EXCLUSIVE: NONE}


def test_an_externally_set_limit_is_not_overwritten(tmp_path: Path) -> None:
    model = node()
    quotas = LiftedQuotas(model, "kubepods", tmp_path)
    quotas.update((POD, EXCLUSIVE))
    model.groups[EXCLUSIVE].quota = Quota(50_000)
    quotas.update(())
    assert limits(model)[EXCLUSIVE] == Quota(50_000)


def test_a_limit_that_comes_back_is_lifted_again_and_the_newer_one_restored(
    tmp_path: Path,
) -> None:
    model = node()
    quotas = LiftedQuotas(model, "kubepods", tmp_path)
    quotas.update((POD, EXCLUSIVE))
    model.groups[EXCLUSIVE].quota = Quota(300_000)
    quotas.update((POD, EXCLUSIVE))
    assert limits(model)[EXCLUSIVE] == NONE
    quotas.update(())
    assert limits(model)[EXCLUSIVE] == Quota(300_000)


def test_the_limit_of_a_deleted_cgroup_is_dropped(tmp_path: Path) -> None:
    model = node()
    quotas = LiftedQuotas(model, "kubepods", tmp_path)
    quotas.update((POD, EXCLUSIVE))
    model.vanish(POD)
    assert quotas.update((POD, EXCLUSIVE)).complete
    assert (tmp_path / FILE_NAME).read_text() == "{}"


def test_a_failed_restore_is_retried(tmp_path: Path) -> None:
    model = node()
    quotas = LiftedQuotas(model, "kubepods", tmp_path)
    quotas.update((POD, EXCLUSIVE))

    def refuse(write: Write) -> None:
        raise CgroupRefusedError(write.path, str(write.value), errno.EINVAL, "injected")

    model.before_write = refuse
    assert len(quotas.update(()).failed) == 2
    model.before_write = lambda write: None
    assert LiftedQuotas(model, "kubepods", tmp_path).update(()).complete
    assert limits(model) == {POD: TWO, EXCLUSIVE: TWO}


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
def test_a_damaged_file_counts_as_none_and_is_logged(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE_NAME).write_text(text, encoding="latin-1")
    model = node(pod=NONE)
    assert LiftedQuotas(model, "kubepods", tmp_path).update(()).complete
    assert limits(model) == {POD: NONE, EXCLUSIVE: TWO}
    assert "cannot read which CFS limits were removed" in caplog.text


def test_the_first_start_logs_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    LiftedQuotas(node(), "kubepods", tmp_path)
    assert caplog.text == ""


@pytest.mark.parametrize("path", ["kubepods.slice/pod1", "kubepods/../pod1", "kubepodsx", "/x"])
def test_cgroups_outside_the_tree_are_not_touched(tmp_path: Path, path: str) -> None:
    """The tree of another cgroup driver has a similar name; the file may list its limits."""
    (tmp_path / FILE_NAME).write_text(f'{{"{path}": [100000, 100000], "{POD}": [50000, 100000]}}')
    model = node(pod=NONE)
    quotas = LiftedQuotas(model, "kubepods", tmp_path)
    assert quotas.lifted == {POD: Quota(50_000)}
    assert quotas.update(()).complete
    assert limits(model)[POD] == Quota(50_000)


def test_a_kill_between_saving_and_lifting_loses_nothing(tmp_path: Path) -> None:
    """Killed before the first write, and killed before the last limit is dropped from the file."""
    model = node()

    def kill(write: Write) -> None:
        raise KeyboardInterrupt

    model.before_write = kill
    with pytest.raises(KeyboardInterrupt):
        LiftedQuotas(model, "kubepods", tmp_path).update((POD, EXCLUSIVE))
    model.before_write = lambda write: None
    assert LiftedQuotas(model, "kubepods", tmp_path).lifted == {POD: TWO, EXCLUSIVE: TWO}
    LiftedQuotas(model, "kubepods", tmp_path).update((POD, EXCLUSIVE))
    assert limits(model) == {POD: NONE, EXCLUSIVE: NONE}
    model.after_write = kill
    with pytest.raises(KeyboardInterrupt):
        LiftedQuotas(model, "kubepods", tmp_path).update(())
    model.after_write = lambda write: None
    assert LiftedQuotas(model, "kubepods", tmp_path).update(()).complete
    assert limits(model) == {POD: TWO, EXCLUSIVE: TWO}
    assert (tmp_path / FILE_NAME).read_text() == "{}"


def test_nothing_is_lifted_if_the_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    model = node()
    with pytest.raises(IsADirectoryError):
        LiftedQuotas(model, "kubepods", tmp_path).update((POD, EXCLUSIVE))
    assert limits(model) == {POD: TWO, EXCLUSIVE: TWO}


@pytest.mark.parametrize("exclusive", [True, False])
def test_a_limit_that_the_kubelet_writes_while_one_is_saved_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exclusive: bool
) -> None:
    """At a resize both write at the same time, and a disk may take long."""
    model, newer = node(), Quota(150_000)
    sync = os.fsync

    def resize(descriptor: int) -> None:
        sync(descriptor)
        if len(model.groups) > 1:
            model.groups[POD].quota = newer

    quotas = LiftedQuotas(model, "kubepods", tmp_path)
    if exclusive:
        monkeypatch.setattr(os, "fsync", resize)
        quotas.update((POD, EXCLUSIVE))
        assert limits(model)[POD] == NONE
    else:
        quotas.update((POD, EXCLUSIVE))
        model.groups[EXCLUSIVE].quota = newer  # to be saved first, since it is lifted again
        monkeypatch.setattr(os, "fsync", resize)
        quotas.update((EXCLUSIVE,))
    monkeypatch.undo()
    quotas.update(())
    assert limits(model)[POD] == newer


def test_a_limit_is_durable_before_it_is_lifted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rename is durable only once the folder is synced. Source: fsync(2)."""
    model = node()
    steps: list[str] = []

    def sync(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        steps.append("folder" if is_folder else "file")

    monkeypatch.setattr(os, "fsync", sync)
    model.before_write = lambda write: steps.append("write")
    LiftedQuotas(model, "kubepods", tmp_path).update((POD, EXCLUSIVE))
    assert steps == ["file", "folder", "write", "write"]
