"""The page in Debian's Chromium: what people see, with the keyboard, in the dark, on a phone."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from numapin_client.resources import Json
from support.fakes.apiserver import FakeApiServer
from support.fakes.worlds.asked_cluster import fill, kubeconfig
from support.page.browser import opened, violations
from support.page.pictured_cluster import HOSTILE, dump, fleet, of_kind, pictured
from support.page.served import served
from support.suite.left_out import before_release

PATHS = (
    "#/",
    "#/plan",
    "#/plan/xeon",
    "#/node/epyc",
    "#/node/stuck",
    "#/node/spare",
    "#/pod/default/epyc-9",
)


@pytest.fixture(scope="module")
def pictures() -> dict[str, list[Json]]:
    """Objects of clusters; each was decided in an event loop of its own."""
    return {"fleet": fleet(), "changed": pictured("laptop-1s1n-4c-smt2", "laptop", "2")}


@pytest.fixture
async def url(pictures: dict[str, list[Json]], tmp_path: Path) -> AsyncIterator[str]:
    """A page of a file with nodes in every state."""
    file = tmp_path / "cluster.json"
    file.write_text(dump(pictures["fleet"]))
    edit = tmp_path / "edit.json"
    policy = of_kind(pictures["fleet"], "CpuPolicy")
    edit.write_text(json.dumps(policy | {"spec": policy["spec"] | {"reserved": {"count": 4}}}))
    async with served("--cluster", str(file), "-f", str(edit)) as found:
        yield found


async def settled(page: Page) -> None:
    """Wait until the page has what it asked for."""
    await expect(page.locator("main p").first).to_be_visible()
    await expect(page.locator("[aria-busy]")).to_have_count(0)


@before_release
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_everybody_can_use_each_page(url: str, *, dark: bool) -> None:
    async with opened(url, dark=dark) as page:
        for path in PATHS:
            await page.goto(f"{url}/{path}")
            await settled(page)
            assert await violations(page) == []


@before_release
@pytest.mark.parametrize("path", PATHS)
async def test_a_small_screen_shows_all_of_it_without_scrolling_sideways(
    url: str, path: str
) -> None:
    async with opened(f"{url}/{path}", width=360) as page:
        await settled(page)
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360


async def test_a_node_is_found_and_left_with_the_keyboard(url: str) -> None:
    async with opened(url) as page:
        rows = page.locator("table.nodes tbody tr")
        await expect(rows).to_have_count(8)
        await page.keyboard.press("/")
        await page.keyboard.type("epy")
        await expect(rows).to_have_count(1)
        await expect(page.get_by_role("link", name="default/epyc-9")).to_be_visible()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="Node epyc")).to_be_visible()
        await expect(page.locator(".cpu[title]")).to_have_count(128)
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("heading", name="Nodes")).to_be_visible()


@before_release
async def test_what_a_container_has_stands_out(url: str) -> None:
    async with opened(f"{url}/#/node/epyc") as page:
        await page.get_by_role("link", name="default/epyc-0").focus()
        lit = page.locator(".cpu[data-holder]:not(.dimmed)")
        await expect(lit).to_have_count(6)
        assert await lit.all_inner_texts() == [f"A {cpu}" for cpu in range(2, 8)]


@before_release
async def test_states_and_what_still_fits_follow_the_choice(url: str) -> None:
    async with opened(url) as page:
        await page.get_by_role("button", name="Full").click()
        rows = page.locator("table.nodes tbody tr")
        await expect(rows).to_have_count(1)
        assert "0 of 6" in await rows.inner_text()
        assert "0 of 6 CPUs free on 1 node" in await page.locator("main").inner_text()


async def test_text_of_the_cluster_is_text(url: str) -> None:
    async with opened(f"{url}/#/node/stuck") as page:
        await expect(page.get_by_text(HOSTILE)).to_be_visible()
        assert await page.locator("img").count() == 0


@before_release
async def test_a_node_is_shown_before_and_after_an_edit(url: str) -> None:
    async with opened(f"{url}/#/plan") as page:
        await page.get_by_role("link", name="power").click()
        for part in ("Before", "After"):
            await expect(page.get_by_role("heading", name=part, exact=True)).to_be_visible()
        await expect(page.locator(".cpu[title]")).to_have_count(2 * 256)


@before_release
async def test_a_pods_page_says_what_would_help(url: str) -> None:
    async with opened(f"{url}/#/pod/default/epyc-9") as page:
        await expect(page.get_by_role("heading", name="What would help")).to_be_visible()
        await expect(page.get_by_role("img", name="failed")).to_have_count(1)
        await page.get_by_role("link", name="epyc", exact=True).click()
        await expect(page.get_by_role("heading", name="Node epyc")).to_be_visible()


@before_release
async def test_it_follows_the_cluster_and_says_when_it_cannot(
    pictures: dict[str, list[Json]], tmp_path: Path
) -> None:
    async with FakeApiServer() as api:
        fill(api, {"items": pictures["fleet"]})
        login = kubeconfig(api.url, tmp_path)
        async with served("--kubeconfig", str(login)) as url, opened(url) as page:
            row = page.locator("tr", has=page.get_by_role("link", name="laptop", exact=True))
            await expect(row).to_contain_text("3 of 6")
            fill(api, {"items": [of_kind(pictures["changed"], "NodeAssignment")]})
            await expect(row).to_contain_text("4 of 6")
            await expect(page.locator("#connection")).to_have_text("live")


@before_release
async def test_without_rights_it_says_which_are_missing(
    pictures: dict[str, list[Json]], tmp_path: Path
) -> None:
    async with FakeApiServer() as api:
        fill(api, {"items": pictures["fleet"]})
        api.forbidden = {"list nodeassignments"}
        login = kubeconfig(api.url, tmp_path)
        async with served("--kubeconfig", str(login)) as url, opened(url) as page:
            notice = page.get_by_text("may not list nodeassignments.numapin.io")
            await expect(notice).to_be_visible()
            assert await violations(page) == []


@before_release
async def test_a_lost_connection_is_said_and_what_was_seen_stays(
    pictures: dict[str, list[Json]], tmp_path: Path
) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(dump(pictures["fleet"]))
    async with AsyncExitStack() as ending:
        url = await ending.enter_async_context(served("--cluster", str(file)))
        async with opened(url) as page:
            rows = page.locator("table.nodes tbody tr")
            await expect(rows).to_have_count(8)
            await ending.aclose()
            await expect(page.get_by_text("Connection to numapin serve lost")).to_be_visible()
            await expect(rows).to_have_count(8)
            assert await violations(page) == []
            port = url.rpartition(":")[2]
            async with served("--cluster", str(file), port=port):
                await expect(page.locator("#connection")).to_have_text("a file")
