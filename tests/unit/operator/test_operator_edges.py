"""The operator's small edges: probe pages, what starts wrongly."""

import logging
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from numapin_operator.__main__ import main
from numapin_operator.health import CannotListenError, Health, build_application, serve
from numapin_operator.settings import Address


async def ask(health: Health, page: str) -> tuple[int, str]:
    runner = await serve(build_application(health), Address("127.0.0.1", 0))
    try:
        host, port = runner.addresses[0][:2]
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://{host}:{port}{page}") as answer,
        ):
            return answer.status, await answer.text()
    finally:
        await runner.cleanup()


async def test_ready_says_its_role() -> None:
    health = Health(missing=dict, role=lambda: "standing by")
    assert await ask(health, "/readyz") == (200, "ok: standing by\n")
    assert await ask(health, "/healthz") == (200, "ok\n")


async def test_not_ready_says_what_is_missing() -> None:
    health = Health(lambda: {"pods": "not listed yet", "nodes": "refused"}, lambda: "")
    assert await ask(health, "/readyz") == (503, "nodes: refused\npods: not listed yet\n")
    assert await ask(health, "/healthz") == (200, "ok\n"), "a restart would not help"


async def test_an_address_that_is_taken_is_named() -> None:
    pages = build_application(Health(dict, str))
    runner = await serve(pages, Address("127.0.0.1", 0))
    try:
        port = runner.addresses[0][1]
        with pytest.raises(CannotListenError, match=f"127.0.0.1:{port}.*choose another"):
            await serve(pages, Address("127.0.0.1", port))
    finally:
        await runner.cleanup()


@pytest.fixture
def logging_restored() -> Iterator[None]:
    """Logging belongs to the process; what a test sets up ends with it."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)
    logging.getLogger("kopf").setLevel(logging.NOTSET)


@pytest.mark.usefixtures("logging_restored")
@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "no kubeconfig at"), ("users: [", "cannot read the kubeconfig")],
)
def test_a_bad_kubeconfig_ends_it_with_a_reason(
    content: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    assert main([f"--kubeconfig={path}"]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("logging_restored")
def test_kopf_is_quiet_unless_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"--kubeconfig={tmp_path / 'none'}"]) == 2
    logging.getLogger("kopf.objects").warning("kopf says", extra={"memo": "long"})
    logging.getLogger("kopf.objects").info("kopf saw an event")
    assert logging.getLogger("kopf").level == logging.WARNING
    written = capsys.readouterr().err
    assert "kopf says\n" in written
    assert "kopf saw an event" not in written
