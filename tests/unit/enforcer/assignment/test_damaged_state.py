"""No file in the enforcer's folder of state keeps enforcer or standby from starting."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given

from numapin_enforcer.assignment.copy_file import CopyFile, LocalCopyError
from numapin_enforcer.assignment.local_copy import LocalCopy
from numapin_enforcer.cfs_quota.lifted import _read as read_limits
from numapin_enforcer.cgroups.memory.binding import SavedMems
from numapin_enforcer.host.found import FoundCgroups
from numapin_enforcer.interrupts.saved_masks import SavedMasks
from numapin_enforcer.partitions.saved import FoundPartitions
from numapin_enforcer.standby.saved_spec import SavedSpec
from support.values.files.damaged import contents, spoiled

FOUND = {"/a": {"cpus": "0-3", "allowedCPUs": None, "id": 7}}
SAVED: Any = {
    "boot": "b",
    "cgroups": FOUND,
    "masks": {"irq/7": ["0-3", ["eth0"], ["0"]]},
    "kubepods/a": ["0-3", "root"],
    "kubepods/b": [50_000, 100_000],
    "kubepods/c": "0-1",
}
NAMES = ("boot", "b", "cgroups", "masks", "cpus", "allowedCPUs", "id", "kubepods/a", "0-3")
ROW = {"podUID": "u", "namespace": "n", "pod": "p", "container": "c", "cpus": "1", "mems": ""}
SPEC: Any = {"mode": "Static", "pools": {"reserved": "", "shared": "0"}, "containers": [ROW]}
COPY: Any = {"node": "n1", "uid": "u", "generation": 3, "spec": SPEC}
FIELDS = ("node", "uid", "generation", "spec", "mode", "pools", "shared", "containers", "cpus")

READERS: tuple[Callable[[Path], object], ...] = (
    lambda path: FoundCgroups(path.parent, "b").cgroups,
    lambda path: SavedMasks(path.parent, "b").masks,
    lambda path: FoundPartitions(path.parent).states,
    lambda path: SavedMems(path.parent).mems,
    lambda path: read_limits(path, "kubepods"),
)
FILES = ("host-cgroups.json", "interrupts.json", "partitions.json", "mems.json", "limits.json")


@given(contents(SAVED, NAMES))
def test_what_is_saved_is_read_or_left_alone(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, reader in zip(FILES, READERS, strict=True):
            path = Path(folder) / name
            path.write_bytes(content)
            found = reader(path)
            assert isinstance(found, dict)
            assert all(isinstance(name, str) for name in found)


@given(contents(COPY | {"schemaVersion": 1}, FIELDS))
def test_any_local_copy_is_read_or_names_its_file(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        copy = LocalCopy(folder, "n1")
        copy.path.write_bytes(content)
        said = ""
        try:
            copy.read()
        except LocalCopyError as refused:
            said = str(refused)
        assert not said or str(copy.path) in said
        SavedSpec(CopyFile(folder, "n1")).spec()


@given(spoiled(COPY, FIELDS).filter(lambda one: isinstance(one, dict)))
def test_a_copy_with_a_right_checksum_and_wrong_fields_names_its_file(fields: Any) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        copy = LocalCopy(folder, "n1")
        CopyFile(folder, "n1").write(fields)
        said, found = "", None
        try:
            found = copy.read()
        except LocalCopyError as refused:
            said = str(refused)
        assert (found is None) == (str(copy.path) in said)
        if found is not None:
            json.dumps(found.spec.to_wire())
            assert isinstance(found.uid, str)
            assert isinstance(found.generation, int)
        SavedSpec(CopyFile(folder, "n1")).spec()
