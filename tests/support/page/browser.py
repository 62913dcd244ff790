"""Debian's Chromium with a page of its own, which fails on anything that the page logs as wrong."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import ConsoleMessage, Dialog, Error, Page, async_playwright, expect

from numapin_lab.errors import MissingError

CHROMIUM = "chromium"
MOST_MILLISECONDS = 120_000
"""What a page takes on a busy machine; only what hangs takes longer."""

expect.set_options(timeout=MOST_MILLISECONDS)

_ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage"]
"""Tests run as root, which Chromium's sandbox refuses, and in containers with little shared
memory."""


@asynccontextmanager
async def opened(url: str, *, dark: bool = False, width: int = 1280) -> AsyncIterator[Page]:
    """The page of an address; errors on it fail the test, but for those that the test forgives."""
    program = shutil.which(CHROMIUM)
    if program is None:
        raise MissingError(CHROMIUM, "apt-get install -y --no-install-recommends chromium")
    errors: list[str] = []
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=program, args=_ARGUMENTS)
        try:
            page = await browser.new_page(
                viewport={"width": width, "height": 900},
                color_scheme="dark" if dark else "light",
            )
            _collect(page, errors)
            page.set_default_timeout(MOST_MILLISECONDS)
            await page.goto(url)
            yield page
        finally:
            await browser.close()
    assert [one for one in errors if "net::ERR_" not in one] == []


def _collect(page: Page, errors: list[str]) -> None:
    def on_error(error: Error) -> None:
        errors.append(str(error))

    def on_dialog(dialog: Dialog) -> None:
        errors.append(f"dialog: {dialog.message}")

    def on_console(said: ConsoleMessage) -> None:
        if said.type == "error":
            errors.append(said.text)

    page.on("pageerror", on_error)
    page.on("dialog", on_dialog)
    page.on("console", on_console)


async def violations(page: Page) -> list[str]:
    """What axe finds that keeps people from using the page."""
    found = (await Axe().run(page)).response["violations"]
    return [f"{one['id']}: {node['html'][:200]}" for one in found for node in one["nodes"]]
