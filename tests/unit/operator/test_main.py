"""How the process starts, and how it ends when it cannot."""

import asyncio
import gc
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from numapin_operator.__main__ import (
    COLLECTOR_THRESHOLDS,
    _freeze_survivors,
    _run_until,
    limit_collector,
    main,
)
from numapin_operator.observe.policy_source.kopf_source import CHATTY_LOGGERS

KUBECONFIG = """\
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


@pytest.fixture
def logging_restored() -> Iterator[None]:
    """Restore the process's logging after a test that sets it up."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)
    for name in CHATTY_LOGGERS:
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.mark.usefixtures("logging_restored")
@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "no kubeconfig at"), ("users: [", "cannot read the kubeconfig")],
)
def test_an_unusable_kubeconfig_ends_the_process_with_a_reason(
    content: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    assert main([f"--kubeconfig={path}"]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("logging_restored")
def test_a_health_address_that_is_taken_ends_the_process_with_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = [f"--kubeconfig={kubeconfig}", f"--health-address=127.0.0.1:{port}"]
        assert main(options) == 2
    shown = capsys.readouterr().err
    assert "cannot serve the probes" in shown
    assert "--health-address" in shown


@pytest.mark.usefixtures("logging_restored")
def test_only_warnings_of_kopf_are_logged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([f"--kubeconfig={tmp_path / 'none'}"]) == 2
    logging.getLogger("kopf.objects").warning("a warning of kopf", extra={"memo": "long"})
    logging.getLogger("kopf.objects").info("kopf got an event")
    assert logging.getLogger("kopf").level == logging.WARNING
    written = capsys.readouterr().err
    assert "a warning of kopf\n" in written
    assert "kopf got an event" not in written


async def test_an_election_that_dies_ends_every_part() -> None:
    ended: list[str] = []

    async def part() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("part")

    async def dying() -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    parts: Any = SimpleNamespace(parts=lambda: {"a part": part()})
    with pytest.raises(ExceptionGroup) as caught:
        await _run_until(asyncio.Event(), parts, dying())
    assert caught.value.subgroup(ZeroDivisionError) is not None
    assert ended == ["part"]


def test_no_search_for_cycles_looks_at_what_survived_two() -> None:
    """One search looked at millions of objects, and stopped every thread for 0.8 s."""
    seen: list[int] = []

    def count(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            of = range(info["generation"] + 1)
            seen.append(sum(len(gc.get_objects(generation)) for generation in of))

    thresholds = gc.get_threshold()
    try:
        limit_collector()
        gc.callbacks.append(count)
        kept = [[number] for number in range(300_000)]
    finally:
        gc.callbacks[:] = [one for one in gc.callbacks if one not in (count, _freeze_survivors)]
        gc.set_threshold(*thresholds)
        gc.unfreeze()
    assert len(seen) > len(kept) / COLLECTOR_THRESHOLDS[0] / 2
    assert max(seen) < 20_000
