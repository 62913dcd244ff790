"""Every reason stands in one place, with a meaning that the documentation prints."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from numapin_api.conditions.model import Condition
from numapin_api.conditions.reasons import Reason
from numapin_api.schema.__main__ import reasons_page
from numapin_enforcer.plan.drift import Cause

ROOT = Path(__file__).parents[4]
SOURCES = sorted(
    path
    for root in ("crds", "daemon", "client", "operator", "enforcer", "cli", "page")
    for path in (ROOT / root).rglob("*.py")
    if "generated" not in path.parts
)
LIST_OF_REASONS = ROOT / "crds" / "numapin_api" / "conditions" / "reasons.py"
ASSIGNED = re.compile(r"""\breason\b[^=\n(]*=\s*f?["'][A-Z]""")


@pytest.mark.parametrize("reason", Reason)
def test_a_reason_is_one_word_that_a_condition_may_have(reason: Reason) -> None:
    condition = Condition(
        type="Ready", status="True", last_transition_time="2026-01-01T00:00:00Z", reason=reason
    )
    assert condition.reason == str(reason) == reason.value
    assert re.fullmatch(r"([A-Z][A-Za-z]+)+", reason)


@pytest.mark.parametrize("reason", Reason)
def test_a_meaning_is_one_sentence(reason: Reason) -> None:
    assert reason.meaning.endswith(".")
    assert "|" not in reason.meaning


def test_the_committed_page_lists_every_reason() -> None:
    committed = (ROOT / "docs" / "reasons.md").read_text(encoding="utf-8")
    assert committed == reasons_page(), "run `make schema`"


FINE = {
    Reason.IN_FORCE,
    Reason.ENFORCED,
    Reason.NOT_STALLED,
    Reason.SETTLED,
}
"""Reasons that need no action."""


def test_troubleshooting_explains_every_reason_that_someone_may_act_on() -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    assert [one for one in Reason if one not in FINE and f"`{one}`" not in text] == []


def test_troubleshooting_quotes_no_reason_that_does_not_exist() -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[A-Z]\w+`(?:, `[A-Z]\w+`)*)", text, re.MULTILINE)
    quoted = {word for row in rows for word in re.findall(r"`(\w+)`", row)}
    assert len(quoted) > 20
    assert quoted - set(Cause) <= set(Reason)


def _literals(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and node.value in set(Reason):
            yield f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"
    for number, line in enumerate(text.splitlines(), 1):
        if ASSIGNED.search(line):
            yield f"{path.relative_to(ROOT)}:{number}: {line.strip()}"


def test_no_reason_is_written_outside_the_list() -> None:
    assert len(SOURCES) > 100
    elsewhere = [each for path in SOURCES if path != LIST_OF_REASONS for each in _literals(path)]
    assert elsewhere == []
