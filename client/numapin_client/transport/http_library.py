"""aiohttp, with less memory in every enforcer.

- Without the system's certificate authorities, 2 MiB: when it is imported, aiohttp makes a context
  for requests that bring none, and loads them into it. Every `Login` over TLS has its own.
- With 64 KiB to receive in for each connection over TLS and not asyncio's 256, 0.4 MiB. What TLS
  decrypts at once has 16 KiB at most. Source: RFC 8446, section 5.2.
"""

import os
from asyncio.sslproto import SSLProtocol
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

SSLProtocol.max_size = 64 * 1024
