"""The CPUs of claims come from the files that the DRA driver makes for the container runtime."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.node.dra_claims import MOST_BYTES, MOST_CLAIMS, DraClaims

EVERY = CpuSet.parse("0-63")


def file_of(folder: Path, uid: str, cpus: str = "2-3", **others: Any) -> Path:
    """A file as dra-driver-cpu v0.2.0 writes it."""
    edits = {"env": ["OTHER=1", f"DRA_CPUSET_{uid}={cpus}"]}
    device = {"name": f"claim-{uid}", "containerEdits": edits}
    content = {"cdiVersion": "0.8.0", "kind": "dra.k8s.io/cpu", "devices": [device]}
    path = folder / f"dra.k8s.io-cpu_claim-{uid}.json"
    path.write_text(json.dumps(content | others))
    return path


def found(claims: DraClaims, online: CpuSet = EVERY) -> dict[str, str]:
    claims.observe(full_resync=False)
    return {one.claim_uid: str(one.cpus) for one in claims.on(online)}


def test_claims_come_and_go_with_their_files(tmp_path: Path) -> None:
    folder = tmp_path / "cdi"
    claims = DraClaims(folder)
    assert found(claims) == {}
    folder.mkdir()
    first = file_of(folder, "b-2", "4,6")
    assert found(claims) == {"b-2": "4,6"}
    file_of(folder, "a-1")
    (folder / "nvidia.com-gpu.json").write_text("not for us")
    os.utime(folder, (1, 1))
    assert found(claims) == {"a-1": "2-3", "b-2": "4,6"}
    first.unlink()
    os.utime(folder, (2, 2))
    assert found(claims) == {"a-1": "2-3"}
    assert claims.problem == ""
    assert [one.to_wire() for one in claims.on(CpuSet.parse("0-2"))] == [
        {"claimUID": "a-1", "cpus": "2"}
    ]
    assert claims.on(CpuSet.parse("0-1")) == ()


def test_a_file_that_changes_without_its_folder_is_read_at_the_next_resync(tmp_path: Path) -> None:
    claims, path = DraClaims(tmp_path), file_of(tmp_path, "a-1")
    assert found(claims) == {"a-1": "2-3"}
    path.write_text(path.read_text().replace("2-3", "5"))
    assert found(claims) == {"a-1": "2-3"}
    claims.observe(full_resync=True)
    assert found(claims) == {"a-1": "5"}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[",
        "[" * 100_000,
        "[]",
        '{"devices": {}}',
        '{"devices": [1]}',
        '{"devices": [{"containerEdits": {"env": "x"}}]}',
        '{"devices": [{"containerEdits": {"env": ["DRA_CPUSET_/=1"]}}]}',
        '{"devices": [{"containerEdits": {"env": ["DRA_CPUSET_u=one"]}}]}',
        '{"devices": [{"containerEdits": {"env": ["DRA_CPUSET_u"]}}]} more',
        " " * (MOST_BYTES + 1),
    ],
)
def test_a_bad_file_is_named_and_the_others_count(tmp_path: Path, content: str) -> None:
    file_of(tmp_path, "good")
    bad = tmp_path / "dra.k8s.io-cpu_bad.json"
    bad.write_text(content)
    claims = DraClaims(tmp_path)
    assert found(claims) == {"good": "2-3"}
    assert claims.problem.startswith(f"{bad} cannot be used: ")
    bad.unlink()
    claims.observe(full_resync=True)
    assert claims.problem == ""


def test_a_file_that_cannot_be_read_any_more_stands_for_what_it_had(tmp_path: Path) -> None:
    claims, path = DraClaims(tmp_path), file_of(tmp_path, "a-1")
    assert found(claims) == {"a-1": "2-3"}
    path.write_text("[")
    claims.observe(full_resync=True)
    assert found(claims) == {"a-1": "2-3"}
    assert claims.problem.startswith(f"{path} cannot be used: ")
    path.unlink()
    os.utime(tmp_path, (1, 1))
    assert (found(claims), claims.problem) == ({}, "")


def test_no_more_claims_are_used_than_a_status_can_list(tmp_path: Path) -> None:
    for number in range(MOST_CLAIMS + 1):
        file_of(tmp_path, f"claim-{number:04}", str(number % 64))
    claims = DraClaims(tmp_path)
    assert len(found(claims)) == MOST_CLAIMS
    assert claims.problem == f"{tmp_path} has {MOST_CLAIMS + 1} claims, {MOST_CLAIMS} are used"
