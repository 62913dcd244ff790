"""An audit that could not ask does not pass."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

RELEASE = Path(__file__).parents[2] / "release"
SOUND = {"name": "attrs", "version": "26.1.0", "vulns": []}
SKIPPED = {"name": "yarl", "skip_reason": "Dependency not found on PyPI and could not be audited"}
BAD = {
    "name": "aiohttp",
    "version": "3.9.1",
    "vulns": [{"id": "PYSEC-2024-24", "fix_versions": ["3.9.2"]}],
}


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release_audit", RELEASE / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def printed(*packages: object) -> str:
    return json.dumps({"dependencies": packages, "fixes": []})


@pytest.mark.parametrize(
    ("packages", "status"),
    [((SOUND,), 0), ((SOUND, SKIPPED), 3), ((BAD, SKIPPED), 1), ((SOUND, BAD), 1), ((), 3)],
)
def test_only_packages_that_were_asked_about_are_without_vulnerabilities(
    audit: ModuleType, packages: tuple[object, ...], status: int
) -> None:
    assert audit.read(printed(*packages), "").status == status


def test_a_vulnerability_says_what_mends_it(audit: ModuleType) -> None:
    (line,) = audit.read(printed(BAD), "").found
    assert line == "aiohttp 3.9.1: PYSEC-2024-24, fixed in 3.9.2"


@pytest.mark.parametrize("output", ["", "[]", "{", '"x"'])
def test_a_service_that_cannot_be_reached_is_no_success(audit: ModuleType, output: str) -> None:
    answer = audit.read(output, "Traceback\nConnectionError: no route")
    assert (answer.status, answer.not_asked) == (3, ("ConnectionError: no route",))


def test_what_is_said_names_what_was_not_audited(
    audit: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    audit.say("operator.lock", audit.read(printed(SOUND, *[SKIPPED] * 5), ""))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "operator.lock: asked about 1, 0 known vulnerabilities"
    assert lines[-1].strip() == "NOT AUDITED: 2 more"
    assert len(lines) == 5


def test_every_lock_is_audited(audit: ModuleType) -> None:
    assert set(audit.LOCKS) == set(RELEASE.parent.glob("*/*.lock"))
