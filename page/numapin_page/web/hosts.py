"""Which requests are answered: those of pages that this program served itself.

A page of the web that a browser has open may ask for any address, also on this machine, and under a
name of its own (DNS rebinding). It cannot choose the header `Host`, nor `Sec-Fetch-Site`.
Does no I/O.
"""

from collections.abc import Collection, Mapping
from ipaddress import ip_address
from typing import Final

LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
_OWN_SITE: Final = ("same-origin", "none", "")
"""`none`: a person typed the address. Browsers before 2023 send no such header."""


def is_loopback(address: str) -> bool:
    """Whether only programs of this machine reach an address."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def known_hosts(address: str, port: int, more: Collection[str]) -> frozenset[str]:
    """What `Host` may say, in small letters.

    Args:
        address: what is listened on.
        port: its port.
        more: names under which a proxy or a browser reaches it; any port if they have none.
    """
    named = {*LOOPBACK, f"[{address}]" if ":" in address else address.lower()}
    with_port = {f"{name}:{port}" for name in named}
    return frozenset({*with_port, *(named if port == 80 else ()), *map(str.lower, more)})


def why_refused(hosts: frozenset[str], headers: Mapping[str, str]) -> str:
    """Why a request is not answered; empty if it is."""
    host = headers.get("Host", "").lower()
    name = host.rpartition(":")[0] if host[-1:].isdigit() and not host.endswith("]") else host
    if host not in hosts and name not in hosts:
        return (
            f"this page is not served as {host[:200]!r}; if that is a name of yours, start"
            " numapin serve with --host and that name"
        )
    is_link = headers.get("Sec-Fetch-Mode", "") == "navigate"
    if headers.get("Sec-Fetch-Site", "") not in _OWN_SITE and not is_link:
        return "this page answers no other page"
    return ""


HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of each answer: nothing is loaded from elsewhere, no text becomes markup, nobody frames it."""
