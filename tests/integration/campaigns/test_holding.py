"""A small run of the campaign: a real API server, scheduler and operator."""

import json
from pathlib import Path

import pytest

from numapin_campaigns.__main__ import main
from numapin_campaigns.holding.outcome import Way

SMALL = ("--pods=12", "--nodes=2", "--load=1.5", "--runs=1.5", "--seed=1")
"""More is asked for than there is, so pods wait, share or fail."""


def test_held_pods_are_aligned_and_none_fails(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    assert main(["holding", *SMALL, f"--output={file}"]) == 0
    figures = json.loads(file.read_text())
    assert figures[Way.HOLD]["atStart"] == 12
    assert figures[Way.HOLD]["failedPods"] == 0
    for way in Way:
        ended = [figures[way][one] for one in ("atStart", "later", "never")]
        assert sum(ended) == 12, f"{way}: {figures[way]}"
    assert len(figures["times"][Way.HOLD]) == 12


def test_pods_are_held_with_assignments_of_the_older_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMAPIN_ASSIGNMENT_FORM", "v1alpha1")
    assert main(["holding", *SMALL, "--only", Way.HOLD]) == 0
