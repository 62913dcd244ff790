"""Issue forms are forms as GitHub takes them, and ask for what is needed to help."""

from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / ".github" / "ISSUE_TEMPLATE"
FORMS = sorted(set(FOLDER.glob("*.yml")) - {FOLDER / "config.yml"})
ELEMENTS = {"markdown", "textarea", "input", "dropdown", "checkboxes"}


def load(form: Path) -> Any:
    return yaml.safe_load(form.read_text())


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_a_form_has_what_github_demands(form: Path) -> None:
    loaded = load(form)
    assert {"name", "description", "body"} <= loaded.keys()
    fields = [one for one in loaded["body"] if one["type"] != "markdown"]
    assert {one["type"] for one in loaded["body"]} <= ELEMENTS
    assert len({one["id"] for one in fields}) == len(fields) > 0
    assert all(one["attributes"]["label"] for one in fields)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_a_form_asks_for_the_report(form: Path) -> None:
    (asked,) = (one for one in load(form)["body"] if one.get("id") == "report")
    assert "numapin report" in asked["attributes"]["label"]
    required = asked.get("validations", {}).get("required", False)
    assert required == (form.stem == "bug")


def test_nothing_is_reported_without_a_form() -> None:
    assert len(FORMS) > 1
    assert load(FOLDER / "config.yml")["blank_issues_enabled"] is False
