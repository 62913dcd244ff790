"""What importing the client loads into every daemon."""

import os
import subprocess
import sys

PROGRAM = """
import os, ssl
made, make = [], ssl.create_default_context
ssl.create_default_context = lambda **how: made.append(make(**how)) or made[-1]
before = dict(os.environ)
import numapin_client.transport.connection
print(len(made), sum(len(one.get_ca_certs()) for one in made), dict(os.environ) == before)
"""


def test_the_systems_authorities_are_not_loaded() -> None:
    for more in ({}, {"SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt"}):
        environment = {key: one for key, one in os.environ.items() if key != "SSL_CERT_FILE"}
        output = subprocess.check_output(
            [sys.executable, "-c", PROGRAM], env=environment | more, text=True
        )
        assert output == "1 0 True\n"


BUFFERS = """
import asyncio, ssl
from asyncio.sslproto import SSLProtocol

async def size():
    loop, context = asyncio.get_running_loop(), ssl.create_default_context()
    return len(SSLProtocol(loop, asyncio.Protocol(), context, None).get_buffer(-1))

before = asyncio.run(size())
import numapin_client.transport.connection
print(before, asyncio.run(size()))
"""


def test_a_connection_over_tls_has_a_small_buffer() -> None:
    before, after = subprocess.check_output([sys.executable, "-c", BUFFERS], text=True).split()
    assert (int(before), int(after)) == (262144, 65536)
