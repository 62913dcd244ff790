"""Free TCP ports on loopback."""

import random
import socket
from collections.abc import Callable

# Below the range of outgoing connections (from 32768 on, ip_local_port_range): a port of that range
# could be taken by any client before its daemon has started.
FIRST, LAST = 20000, 32000


def is_free(port: int) -> bool:
    """Whether a daemon could now listen on this port of every address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def choose(count: int, free: Callable[[int], bool] = is_free) -> tuple[int, ...]:
    """`count` different free ports, in random order, so that labs rarely choose the same.

    Raises:
        OSError: fewer than `count` ports of the range are free.
    """
    chosen: list[int] = []
    candidates = list(range(FIRST, LAST))
    random.shuffle(candidates)
    for port in candidates:
        if len(chosen) == count:
            break
        if free(port):
            chosen.append(port)
    if len(chosen) < count:
        raise OSError(f"fewer than {count} free TCP ports in {FIRST}-{LAST}")
    return tuple(chosen)
