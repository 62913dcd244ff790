"""The files of the page: nothing from elsewhere, and no text of a cluster becomes markup."""

import re
from importlib.resources import files
from pathlib import Path

import html5lib
import pytest

from numapin_page.views.node_row import Kind
from numapin_page.views.room import SIZES

FILES = {one.name: one.read_text() for one in Path(str(files("numapin_page"))).glob("files/*")}
SCRIPTS = sorted(name for name in FILES if name.endswith(".js"))
MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc"
    r"|javascript:|setTimeout\(['\"`]"
)


def test_the_page_is_valid_and_has_no_script_or_style_of_its_own() -> None:
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    page = parser.parse(FILES["index.html"])
    elements = list(page.iter())
    assert not [one for one in elements if any(name.startswith("on") for name in one.attrib)]
    assert not [one for one in elements if "style" in one.attrib or one.tag == "style"]
    assert not [one for one in page.iter("script") if one.text]
    loaded = {one.attrib["src"] for one in page.iter("script")}
    loaded |= {one.attrib["href"] for one in page.iter("link")}
    assert loaded <= FILES.keys()


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_imports_its_neighbours_only_and_makes_no_markup(name: str) -> None:
    text = FILES[name]
    assert {one.removeprefix("./") for one in re.findall(r'from "([^"]+)"', text)} <= FILES.keys()
    assert MARKUP.findall(text) == []
    assert re.findall(r"https?://(?!www\.w3\.org/)", text) == []


def test_only_one_script_makes_elements() -> None:
    makers = [name for name in SCRIPTS if "createElement" in FILES[name]]
    assert makers == ["dom.js"]


def test_the_style_loads_nothing() -> None:
    assert re.findall(r"url\(|@import", FILES["page.css"]) == []


def test_each_kind_of_node_has_a_title_a_colour_and_a_sign() -> None:
    entry = re.compile(r'^  (\w+): \{ title: "[^"]+", sign: "[^"]+"', re.MULTILINE)
    known = entry.findall(FILES["kinds.js"])
    assert set(known) == set(Kind)
    for kind in Kind:
        assert f"--{kind}:" in FILES["page.css"]
        assert f".{kind} {{" in FILES["page.css"]


def test_sizes_are_those_that_the_server_counts() -> None:
    (listed,) = re.findall(r"const SIZES = \[([\d, ]+)\]", FILES["fleet.js"])
    assert tuple(map(int, listed.split(","))) == SIZES


def test_every_colour_has_one_for_each_scheme_or_keeps_its_own() -> None:
    """A variable that is used is declared."""
    used = set(re.findall(r"var\((--[\w-]+)\)", FILES["page.css"]))
    assert used <= set(re.findall(r"(--[\w-]+):", FILES["page.css"]))
