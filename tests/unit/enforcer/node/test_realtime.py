"""The process asks for a real-time priority, and goes on without it."""

import logging
import os

import pytest

from numapin_enforcer.node.realtime import raise_priority


def test_the_lowest_priority_is_asked_for_and_not_inherited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[int, int, int]] = []

    def accept(pid: int, policy: int, parameters: os.sched_param) -> None:
        asked.append((pid, policy, parameters.sched_priority))

    monkeypatch.setattr(os, "sched_setscheduler", accept)
    raise_priority()
    assert asked == [(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, 1)]


def test_without_the_capability_the_process_goes_on_and_logs_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(pid: int, policy: int, parameters: os.sched_param) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with caplog.at_level(logging.INFO):
        raise_priority()
    assert "no real-time priority" in caplog.text
