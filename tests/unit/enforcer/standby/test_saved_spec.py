"""The standby reads of the local copy what the enforcer has saved."""

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_enforcer.assignment.copy_file import CopyFile
from numapin_enforcer.assignment.local_copy import Assignment, LocalCopy
from numapin_enforcer.standby.saved_spec import SavedSpec

POOLS = {"reserved": "", "shared": "0"}
CPUS = st.sets(st.integers(0, 300), min_size=1).map(CpuSet)
CONTAINERS = st.tuples(
    st.sampled_from(("u1", "u2")),
    st.sampled_from(("a", "b")),
    CPUS,
    st.sets(st.integers(0, 7)).map(MemSet),
    st.booleans(),
).map(lambda one: ContainerAssignment(one[0], "d", "p", one[1], *one[2:]))
SPECS = st.tuples(CPUS, st.lists(CONTAINERS, max_size=4)).map(
    lambda one: NodeAssignmentSpec(pools=Pools(one[0], one[0]), containers=tuple(one[1]))
)


@given(SPECS)
def test_it_reads_what_the_enforcer_saved(
    tmp_path_factory: pytest.TempPathFactory, spec: NodeAssignmentSpec
) -> None:
    folder = tmp_path_factory.mktemp("state")
    LocalCopy(folder, "n1").write(Assignment("n1", "uid", 1, spec))
    assert SavedSpec(CopyFile(folder, "n1")).spec() == spec


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"mode": "Audit", "pools": {"reserved": "", "shared": "0"}},
        {"mode": "None", "pools": {"reserved": "", "shared": "0"}},
        {"pools": None},
    ],
    ids=str,
)
def test_what_enforces_nothing_is_none(tmp_path: Path, spec: dict[str, Any]) -> None:
    write(tmp_path, spec)
    assert SavedSpec(CopyFile(tmp_path, "n1")).spec() is None


@pytest.mark.parametrize(
    "spec",
    [
        [],
        {"pools": "0"},
        {"pools": {}},
        {"pools": {"reserved": "", "shared": "x"}},
        {"pools": {"reserved": "", "shared": "0"}, "containers": [{"podUID": "u"}]},
        {"pools": {"reserved": "", "shared": "0"}, "containers": 3},
    ],
    ids=str,
)
def test_a_copy_of_another_shape_is_logged_and_not_used(
    tmp_path: Path, spec: Any, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, spec)
    with caplog.at_level(logging.WARNING):
        assert SavedSpec(CopyFile(tmp_path, "n1")).spec() is None
    assert "unusable" in caplog.text


def test_a_copy_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    saved = SavedSpec(CopyFile(tmp_path, "n1"))
    assert saved.spec() is None
    write(tmp_path, {"pools": {"reserved": "", "shared": "0-1"}})
    first = saved.spec()
    assert first is saved.spec() is not None
    os.utime(tmp_path / "assignment.json", ns=(0, 0))
    assert saved.spec() is not first


def test_its_program_loads_neither_models_nor_an_event_loop() -> None:
    """The import contracts say the same of our own modules; this holds for what those import."""
    code = "import sys, numapin_enforcer.standby.__main__; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()).isdisjoint(
        {"pydantic", "aiohttp", "asyncio", "ssl", "_hashlib", "importlib.metadata", "email"}
    )


def write(folder: Path, spec: Any) -> None:
    CopyFile(folder, "n1").write({"node": "n1", "uid": "u", "generation": 1, "spec": spec})
