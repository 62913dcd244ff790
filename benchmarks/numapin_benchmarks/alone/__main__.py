"""What runs on a service's CPU besides it, for each way of keeping others off, in one machine.

    python -m numapin_benchmarks.alone [--seconds 30] [--output FILE]

An emulated machine with four CPUs, cgroup v2 and a kernel that makes partitions of containers. The
service works for a moment every 50 ms on CPU 3; beside it are three busy processes of another pod,
three of the host, and a busy network. The boot arguments of the last row are those that people use
instead: it is a boot of its own. Times are those of an emulator: compare rows, not with hardware.
"""

import argparse
import json
import os
import sys
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from numapin_benchmarks.alone.scenarios import BY_BOOT, SCENARIOS
from numapin_lab.vm.kernel import VARIABLE
from numapin_lab.vm.machine import Machine, VirtualMachine

BOOT_ARGUMENTS = "isolcpus=domain,managed_irq,3 irqaffinity=0-2 workqueue.unbound_cpus=0-2"
GUEST_SECONDS = 1800
COLUMNS = (
    "",
    "others' CPU time, ms/s",
    "their switches /s",
    "device interrupts /s",
    "timer interrupts /s",
    "migrations",
    "run delay, ms/s",
    "p99, ms",
)


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"x" * 65536)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name it has
        """Say nothing."""


def boot(append: str, names: Iterable[str], seconds: float, port: int) -> list[dict[str, Any]]:
    """Measure some scenarios in one machine."""
    machine = Machine(sockets=1, cores=4, threads=1, numa_nodes=1, append=append)
    environment = {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    url = f"http://10.0.2.2:{port}/"
    command = (sys.executable, "-m", "numapin_benchmarks.alone.guest", url, str(seconds), *names)
    guest = VirtualMachine(machine, environment)
    done = guest.run(command, GUEST_SECONDS, echo=lambda line: print(line, end="", file=sys.stderr))
    if done.status:
        sys.exit(f"the guest failed:\n{done.output}")
    rows = [line for line in done.output.splitlines() if line.startswith("row ")]
    return [json.loads(line.removeprefix("row ")) for line in rows]


def table(rows: Iterable[dict[str, Any]]) -> str:
    """The rows as Markdown; figures of CPUs are for each CPU that the service may use."""
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    for one in rows:
        each = one["seconds"] * one["cpus"]
        figures = (
            f"{(one['cpu_seconds'] - one['own_seconds']) * 1000 / each:.1f}",
            f"{max(one['cpu_switches'] - one['own_switches'], 0) / each:.1f}",
            f"{one['devices'] / each:.1f}",
            f"{one['timers'] / each:.0f}",
            f"{one['migrations']:.0f}",
            f"{one['delay_seconds'] * 1000 / one['seconds']:.1f}",
            f"{one['p99']:.0f}",
        )
        lines.append(f"| {' | '.join((one['name'], *figures))} |")
    return "\n".join(lines)


def main() -> None:
    """Boot twice, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--output", type=Path, help="also write the rows here, as JSON")
    options = parser.parse_args()
    os.environ.setdefault(VARIABLE, "backports")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    live = [one.name for one in SCENARIOS if one.name != BY_BOOT]
    rows = boot("", live, options.seconds, server.server_port)
    rows += boot(BOOT_ARGUMENTS, [BY_BOOT], options.seconds, server.server_port)
    if options.output:
        options.output.write_text(json.dumps(rows, indent=1) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
