"""aiohttp, without the system's certificate authorities.

When it is imported, aiohttp makes a context for requests that bring none, and loads them into it:
2 MiB in every enforcer. Every `Login` over TLS has a context of its own.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["aiohttp"]

_FILE: Final = "SSL_CERT_FILE"
"""Source: SSL_CTX_load_verify_locations(3), "set_default_verify_paths"."""


@contextmanager
def _without_authorities() -> Iterator[None]:
    before = os.environ.get(_FILE)
    os.environ[_FILE] = os.devnull
    try:
        yield
    finally:
        if before is None:
            del os.environ[_FILE]
        else:
            os.environ[_FILE] = before


with _without_authorities():
    import aiohttp
