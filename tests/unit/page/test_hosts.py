"""Which requests are answered: never those that a page of the web has a browser send."""

import pytest

from numapin_page.web.hosts import is_loopback, known_hosts, why_refused

LOCAL = known_hosts("127.0.0.1", 8390, ())


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8390", "127.0.0.1.evil.example:8390", "localhost:9000", "", "["],
)
def test_a_name_that_is_not_its_own_is_refused(host: str) -> None:
    assert "--host" in why_refused(LOCAL, {"Host": host})


@pytest.mark.parametrize(
    "host", ["localhost:8390", "LOCALHOST:8390", "127.0.0.1:8390", "[::1]:8390"]
)
def test_its_own_names_are_served(host: str) -> None:
    assert why_refused(LOCAL, {"Host": host}) == ""


def test_a_given_name_is_served_at_any_port() -> None:
    hosts = known_hosts("0.0.0.0", 8390, ["Numapin.example.com"])
    for host in ("numapin.example.com", "numapin.example.com:443", "0.0.0.0:8390"):
        assert why_refused(hosts, {"Host": host}) == ""
    assert why_refused(hosts, {"Host": "example.com"})


@pytest.mark.parametrize(
    ("site", "mode", "answered"),
    [
        ("cross-site", "no-cors", False),
        ("same-site", "cors", False),
        ("cross-site", "navigate", True),
        ("same-origin", "cors", True),
        ("none", "navigate", True),
    ],
)
def test_other_pages_get_no_answer_but_may_link_to_it(site: str, mode: str, answered: bool) -> None:
    headers = {"Host": "localhost:8390", "Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
    assert (why_refused(LOCAL, headers) == "") is answered


@pytest.mark.parametrize(
    ("address", "loopback"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)],
)
def test_what_other_machines_reach_is_no_loopback(address: str, loopback: bool) -> None:
    assert is_loopback(address) is loopback
