"""A small run of the campaign: a real API server, scheduler and operator."""

import json
from pathlib import Path

import pytest

from numapin_campaigns.__main__ import main
from numapin_campaigns.holding.outcome import Way
from support.suite.left_out import since_kubernetes

SMALL = ("--pods=12", "--nodes=2", "--load=1.5", "--runs=1.5", "--seed=1")
"""More is asked for than there is, so pods wait, share or fail."""


FIT_AT_ONCE = ("--pods=2", "--nodes=2", "--load=0.8", "--runs=1.5", "--seed=1")


def test_held_pods_are_aligned_and_none_fails(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    ways = (Way.HOLD, Way.SHARE, Way.KUBELET)
    assert main(["holding", *SMALL, "--only", *ways, f"--output={file}"]) == 0
    figures = json.loads(file.read_text())
    assert figures[Way.HOLD]["atStart"] == 12
    assert figures[Way.HOLD]["failedPods"] == 0
    for way in ways:
        ended = [figures[way][one] for one in ("atStart", "later", "never")]
        assert sum(ended) == 12, f"{way}: {figures[way]}"
    assert len(figures["times"][Way.HOLD]) == 12


@since_kubernetes("1.34")  # the plug-in is a scheduler of 1.34, which watches claims
def test_a_scheduler_with_the_plug_in_binds_by_our_objects(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    assert main(["holding", *FIT_AT_ONCE, "--only", Way.PLUG_IN, f"--output={file}"]) == 0
    assert json.loads(file.read_text())[Way.PLUG_IN]["atStart"] == 2


def test_pods_are_held_with_assignments_of_the_older_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMAPIN_ASSIGNMENT_FORM", "v1alpha1")
    assert main(["holding", *SMALL, "--only", Way.HOLD]) == 0
