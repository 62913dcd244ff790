"""The kept assignment: what was written is read back, anything else is refused with the reason."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_enforcer.assignment import local_copy
from numapin_enforcer.assignment.local_copy import Assignment, LocalCopy, LocalCopyError

SPEC = NodeAssignmentSpec(
    pools=Pools(reserved=CpuSet.parse("0"), shared=CpuSet.parse("0-2")),
    containers=(
        ContainerAssignment(
            pod_uid="u1",
            namespace="default",
            pod="p",
            container="c",
            cpus=CpuSet.parse("3"),
            exclusive=True,
        ),
    ),
)
KEPT = Assignment("n1", "uid-1", 7, SPEC)


@pytest.fixture
def copy(tmp_path: Path) -> LocalCopy:
    return LocalCopy(tmp_path / "state", "n1")


def test_what_was_written_is_read(copy: LocalCopy) -> None:
    copy.write(KEPT)
    assert copy.read() == KEPT
    assert [path.name for path in copy.path.parent.iterdir()] == ["assignment.json"]


def test_nothing_was_kept(copy: LocalCopy) -> None:
    assert copy.read() is None


def test_a_removed_copy_is_gone(copy: LocalCopy) -> None:
    copy.write(KEPT)
    copy.remove()
    copy.remove()
    assert copy.read() is None


def _flip_a_cpu(text: str) -> str:
    return text.replace('"cpus": "3"', '"cpus": "2"')


def _cut(text: str) -> str:
    return text[: len(text) // 2]


def _other_version(text: str) -> str:
    return json.dumps(json.loads(text) | {"schemaVersion": 2})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_flip_a_cpu, "the checksum does not match"),
        (_cut, "it is damaged"),
        (lambda _: "", "it is damaged"),
        (lambda _: "[1]", "not an object"),
        (_other_version, "it has schema version 2, and this numapin reads 1"),
    ],
    ids=["one CPU flipped", "cut", "empty", "not an object", "other version"],
)
def test_a_damaged_copy_is_refused(
    copy: LocalCopy, damage: Callable[[str], str], message: str
) -> None:
    copy.write(KEPT)
    copy.path.write_text(damage(copy.path.read_text()))
    with pytest.raises(LocalCopyError, match=message) as caught:
        copy.read()
    assert caught.value.reason == "InvalidLocalCopy"


def test_another_nodes_copy_is_refused(copy: LocalCopy) -> None:
    copy.write(KEPT)
    other = LocalCopy(copy.path.parent, "n2")
    with pytest.raises(LocalCopyError, match="it is of node 'n1', and this is 'n2'"):
        other.read()


def test_a_spec_that_is_none_is_refused(copy: LocalCopy) -> None:
    copy.write(KEPT)
    content = json.loads(copy.path.read_text())
    content.pop("sha256")
    content["spec"]["mode"] = "Whatever"
    content["sha256"] = local_copy._checksum(content)
    copy.path.write_text(json.dumps(content))
    with pytest.raises(LocalCopyError, match="its spec is wrong"):
        copy.read()


def test_a_write_that_fails_leaves_the_old_copy(copy: LocalCopy) -> None:
    copy.write(KEPT)
    copy.path.with_suffix(".new").mkdir()
    with pytest.raises(IsADirectoryError):
        copy.write(Assignment("n1", "uid-1", 8, SPEC))
    assert copy.read() == KEPT


def test_a_folder_where_the_copy_belongs_is_refused(copy: LocalCopy) -> None:
    copy.path.mkdir(parents=True)
    with pytest.raises(LocalCopyError, match="Is a directory"):
        copy.read()


@pytest.mark.parametrize("name", ["node", "uid", "generation", "spec"])
def test_a_copy_that_lacks_something_is_refused(copy: LocalCopy, name: str) -> None:
    copy.write(KEPT)
    content = json.loads(copy.path.read_text())
    for one in ("sha256", name):
        content.pop(one)
    content["sha256"] = local_copy._checksum(content)
    copy.path.write_text(json.dumps(content))
    with pytest.raises(LocalCopyError, match=f"it is damaged .it lacks {name}"):
        copy.read()


def test_a_link_is_replaced_and_what_it_named_is_left_alone(
    copy: LocalCopy, tmp_path: Path
) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("somebody's")
    copy.path.parent.mkdir()
    copy.path.symlink_to(target)
    with pytest.raises(LocalCopyError, match="it is damaged"):
        copy.read()
    copy.write(KEPT)
    assert not copy.path.is_symlink()
    assert (copy.read(), target.read_text()) == (KEPT, "somebody's")


def test_what_cannot_be_read_is_refused(copy: LocalCopy) -> None:
    copy.path.parent.mkdir()
    copy.path.symlink_to(copy.path.name)
    with pytest.raises(LocalCopyError, match="Too many levels"):
        copy.read()
