"""Workflows run nothing that cannot be run elsewhere, and nothing that others may change."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
PINNED = re.compile(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
COMMAND = re.compile(r"(?:sudo (?:--\S+ )*)?(\S+)(?: (\S+))?.*")

each = pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.stem)


def load(workflow: Path) -> Any:
    return yaml.safe_load(workflow.read_text())


def steps(workflow: Path) -> Iterator[Any]:
    for job in load(workflow)["jobs"].values():
        yield from job["steps"]


@each
def test_an_action_is_named_by_its_commit(workflow: Path) -> None:
    lines = [line for line in workflow.read_text().splitlines() if re.search(r"\buses:", line)]
    assert lines
    assert not [line for line in lines if not PINNED.search(line)]


@each
def test_a_step_runs_one_command_of_the_project(workflow: Path) -> None:
    commands = [step["run"].strip() for step in steps(workflow) if "run" in step]
    assert commands
    for command in commands:
        found = COMMAND.fullmatch(command)
        assert found, f"more than one line: {command}"
        if found[1] == "make":
            assert found[2] in TARGETS
        else:
            assert (ROOT / found[1]).is_file()
        assert "${{" not in command, "a value of others would become a part of the command"
        assert not re.search(r"[;|&<>`]", command)


@each
def test_a_workflow_may_read_alone_and_a_job_says_what_more_it_needs(workflow: Path) -> None:
    assert load(workflow)["permissions"] == {"contents": "read"}
    writing = {name for name, job in load(workflow)["jobs"].items() if "permissions" in job}
    assert writing == ({"publish"} if workflow.stem == "release" else set())
    assert all(job["timeout-minutes"] for job in load(workflow)["jobs"].values())


@each
def test_no_pull_request_runs_with_secrets(workflow: Path) -> None:
    assert "pull_request_target" not in workflow.read_text()
    assert "workflow_run" not in workflow.read_text()
    for step in steps(workflow):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_one_action_has_one_commit() -> None:
    text = "".join(workflow.read_text() for workflow in WORKFLOWS)
    commits = set(re.findall(r"uses: (\S+)@(\S+)", text))
    assert len({action for action, _ in commits}) == len(commits)
