"""Run a benchmark with metrics and traces sent by OTLP to a receiver on this machine.

    python -m numapin_benchmarks.with_otlp python -m numapin_benchmarks.operator_latency

The daemons that the benchmark starts inherit the endpoint. The receiver is in this process, takes
everything and reads nothing of it, so that what the benchmark reports of a daemon is the daemon's
own cost. Run the benchmark without it too, and compare.
"""

import os
import subprocess
import sys
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Receiver(ThreadingHTTPServer):
    """Counts requests and bytes by path."""

    def __init__(self) -> None:
        """Listen on a free port of the loopback."""
        super().__init__(("127.0.0.1", 0), Answer)
        self.requests, self.received_bytes = Counter[str](), Counter[str]()

    @property
    def endpoint(self) -> str:
        """What OTEL_EXPORTER_OTLP_ENDPOINT must be."""
        return f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    """Takes one request."""

    server: Receiver

    def do_POST(self) -> None:
        """Read it to its end and accept it; an empty answer is an empty message."""
        size = int(self.headers.get("Content-Length", 0))
        self.rfile.read(size)
        self.server.requests[self.path] += 1
        self.server.received_bytes[self.path] += size
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing: there is one line at the end."""


def main() -> int:
    """Run the command; its exit status is the benchmark's."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    receiver = Receiver()
    Thread(target=receiver.serve_forever, name="receiver", daemon=True).start()
    environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint}
    status = subprocess.run(sys.argv[1:], env=environment, check=False).returncode
    for path, count in sorted(receiver.requests.items()):
        print(f"received {path}: {count} requests, {receiver.received_bytes[path]} bytes")
    if not receiver.requests:
        print("nothing was received", file=sys.stderr)
        return status or 1
    return status


if __name__ == "__main__":
    sys.exit(main())
