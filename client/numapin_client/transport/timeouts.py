"""How long a connection waits. Does no I/O."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait, in seconds.

    Attributes:
        connect_seconds: for a connection, TLS included.
        request_seconds: for a whole answer, a chunk of a list included.
        dead_peer_seconds: for the kernel to notice that the peer is gone.
        unused_seconds: until a connection without a request is closed. A new one costs the API
            server a TLS handshake, so it outlasts the time between two renewals of a Lease. The API
            server closes it after 90 s (`IdleTimeout` in k8s.io/apiserver, secure_serving.go): who
            is later may send a request to a connection that is being closed.
    """

    connect_seconds: float = 10.0
    request_seconds: float = 60.0
    dead_peer_seconds: float = 30.0
    unused_seconds: float = 75.0


DEFAULT_TIMEOUTS: Final = Timeouts()
