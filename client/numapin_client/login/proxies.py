"""The HTTP proxy that the environment names for a server, as Go programs read it.

Python's own functions do not support address ranges in NO_PROXY, which clusters commonly use.
Source: golang.org/x/net/http/httpproxy, `Config.ProxyFunc`.
"""

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from numapin_client.errors import LoginError

_PORTS = {"http": 80, "https": 443}


def proxy_for(server: str, environ: Mapping[str, str]) -> str | None:
    """The proxy for a server's URL, or None for a direct connection.

    Loopback addresses never use a proxy.

    Raises:
        LoginError: the proxy is not an HTTP proxy.
    """
    url = urlsplit(server)
    name = f"{url.scheme}_proxy"
    proxy = environ.get(name.upper()) or environ.get(name) or ""
    if not proxy or _excluded(url, environ.get("NO_PROXY") or environ.get("no_proxy") or ""):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if not proxy.startswith(("http://", "https://")):
        raise LoginError(f"{name.upper()} is {proxy!r}; only HTTP proxies are supported")
    return proxy


def _excluded(url: SplitResult, no_proxy: str) -> bool:
    host = (url.hostname or "").rstrip(".")
    address, port = _address(host), url.port or _PORTS[url.scheme]
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = (one.strip().lower() for one in no_proxy.split(","))
    return any(_matches(one, host, address, port) for one in entries if one)


def _matches(entry: str, host: str, address: IPv4Address | IPv6Address | None, port: int) -> bool:
    """Whether an entry of NO_PROXY (`*`, a network, or a domain) includes this host."""
    if entry == "*":
        return True
    if "/" in entry:
        return address is not None and _in_network(address, entry)
    name, wanted_port = _split(entry)
    if wanted_port not in {"", str(port)}:
        return False
    if (known := _address(name)) is not None:
        return known == address
    name = name.removeprefix("*")
    return host.endswith(name) if name.startswith(".") else f".{host}".endswith(f".{name}")


def _in_network(address: IPv4Address | IPv6Address, entry: str) -> bool:
    try:
        return address in ip_network(entry, strict=False)
    except ValueError:
        return False


def _split(entry: str) -> tuple[str, str]:
    """The host and port of an entry; a bare IPv6 address contains colons itself."""
    if _address(entry) is not None:
        return entry, ""
    host, colon, port = entry.rpartition(":")
    return (host.strip("[]"), port) if colon and port.isdecimal() else (entry.strip("[]"), "")


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
