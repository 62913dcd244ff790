"""A copy that was written is read back; anything else is refused with the reason."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_enforcer.assignment import copy_file
from numapin_enforcer.assignment.copy_file import LocalCopyError
from numapin_enforcer.assignment.local_copy import Assignment, LocalCopy

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
SAVED = Assignment("n1", "uid-1", 7, SPEC)


@pytest.fixture
def copy(tmp_path: Path) -> LocalCopy:
    return LocalCopy(tmp_path / "state", "n1")


def test_a_copy_is_read_as_it_was_written(copy: LocalCopy) -> None:
    copy.write(SAVED)
    assert copy.read() == SAVED
    assert [path.name for path in copy.path.parent.iterdir()] == ["assignment.json"]


def test_there_is_no_copy_before_the_first_write(copy: LocalCopy) -> None:
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
    copy.write(SAVED)
    copy.path.write_text(damage(copy.path.read_text()))
    with pytest.raises(LocalCopyError, match=message) as caught:
        copy.read()
    assert caught.value.reason == "InvalidLocalCopy"


def test_a_copy_of_another_node_is_refused(copy: LocalCopy) -> None:
    copy.write(SAVED)
    other = LocalCopy(copy.path.parent, "n2")
    with pytest.raises(LocalCopyError, match="it is of node 'n1', and this node is 'n2'"):
        other.read()


def test_an_invalid_spec_is_refused(copy: LocalCopy) -> None:
    copy.write(SAVED)
    content = json.loads(copy.path.read_text())
    content.pop("sha256")
    content["spec"]["mode"] = "Whatever"
    content["sha256"] = copy_file._checksum(content)
    copy.path.write_text(json.dumps(content))
    with pytest.raises(LocalCopyError, match="its spec is wrong"):
        copy.read()


def test_a_write_that_fails_leaves_the_old_copy(copy: LocalCopy) -> None:
    copy.write(SAVED)
    copy.path.with_suffix(".new").mkdir()
    with pytest.raises(IsADirectoryError):
        copy.write(Assignment("n1", "uid-1", 8, SPEC))
    assert copy.read() == SAVED


def test_a_folder_in_the_place_of_the_copy_is_refused(copy: LocalCopy) -> None:
    copy.path.mkdir(parents=True)
    with pytest.raises(LocalCopyError, match="Is a directory"):
        copy.read()


@pytest.mark.parametrize("name", ["node", "uid", "generation", "spec"])
def test_an_incomplete_copy_is_refused(copy: LocalCopy, name: str) -> None:
    copy.write(SAVED)
    content = json.loads(copy.path.read_text())
    for one in ("sha256", name):
        content.pop(one)
    content["sha256"] = copy_file._checksum(content)
    copy.path.write_text(json.dumps(content))
    with pytest.raises(LocalCopyError, match=f"it is damaged .it lacks {name}"):
        copy.read()


def test_a_link_is_replaced_and_its_target_is_not_written(copy: LocalCopy, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("other content")
    copy.path.parent.mkdir()
    copy.path.symlink_to(target)
    with pytest.raises(LocalCopyError, match="it is damaged"):
        copy.read()
    copy.write(SAVED)
    assert not copy.path.is_symlink()
    assert (copy.read(), target.read_text()) == (SAVED, "other content")


def test_a_copy_that_cannot_be_read_is_refused(copy: LocalCopy) -> None:
    copy.path.parent.mkdir()
    copy.path.symlink_to(copy.path.name)
    with pytest.raises(LocalCopyError, match="Too many levels"):
        copy.read()


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 100_000])
def test_a_deeply_nested_copy_is_refused(copy: LocalCopy, content: str) -> None:
    copy.write(SAVED)
    copy.path.write_text(content)
    with pytest.raises(LocalCopyError, match="nested too deeply"):
        copy.read()


def test_a_fifo_in_place_of_the_copy_is_refused(copy: LocalCopy) -> None:
    copy.path.parent.mkdir()
    os.mkfifo(copy.path)
    with pytest.raises(LocalCopyError, match="not a regular file"):
        copy.read()
