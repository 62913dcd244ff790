"""What `numapin serve` costs beside a played cluster, and how soon a browser shows what changes.

    python -m numapin_benchmarks.fleet.page [--nodes N] [--changes N] [--minutes N]

Printed are: the seconds until every node has its line, and the CPU seconds of that; the most memory
of the command, then and after it was watched for some minutes; when Chromium painted first, and had
all nodes; and for changes that the played server sends, when the browser had them on its screen.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, expect, sync_playwright

from numapin_benchmarks.fleet.__main__ import write_files
from numapin_benchmarks.surroundings import load, progress

_SEEN: Final = """(node) => new Promise((resolve) => {
  const cell = () => [...document.querySelectorAll("table.nodes tbody tr")]
    .find((row) => row.querySelector("a").textContent === node)?.lastElementChild.textContent;
  const before = cell();
  const look = () => {
    const now = cell();
    if (now === before) return requestAnimationFrame(look);
    requestAnimationFrame(() => resolve(Date.now()));
  };
  look();
  window.isWaiting = true;
})"""
"""Resolves with the time at which another count of drift was painted."""

_PAINTED: Final = """() => performance.getEntriesByType("paint")
  .find((one) => one.name === "first-contentful-paint")?.startTime"""


def main() -> None:
    """Serve, look, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=0.0, help="to watch, a change a second")
    options = parser.parse_args()
    counts = ["--nodes", str(options.nodes)]
    with tempfile.TemporaryDirectory() as folder, _running("-m", _SERVER, *counts) as (server, _):
        files = write_files(Path(folder), server)
        command = ["-m", "numapin_cli.main", "serve", "--port", "0"]
        flags = ["--kubeconfig", files["kubeconfig"]]
        began = time.perf_counter()
        with _running(*command, *flags) as (url, process):
            _wait_for_all(url, options.nodes)
            seconds = time.perf_counter() - began
            print(f"every line made      {seconds:6.1f} s, {_used(process)}")
            with sync_playwright() as driver:
                arguments = ["--no-sandbox"]
                browser = driver.chromium.launch(
                    executable_path="/usr/bin/chromium", args=arguments
                )
                _look(browser.new_page(), url, server, options)
                browser.close()
            print(f"at the end           {_used(process)}, load {load()}")


_SERVER: Final = "numapin_benchmarks.fleet.server"


@contextmanager
def _running(*arguments: str) -> Iterator[tuple[str, int]]:
    """A program that prints its address, and its process ID."""
    with subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            found = next(one for line in process.stdout if (one := re.search(r"http://\S+", line)))
            yield found[0].rstrip("/"), process.pid
        finally:
            process.terminate()


def _wait_for_all(url: str, nodes: int) -> None:
    """Read events until every node has a line with its policy."""
    ready = set[str]()
    with urllib.request.urlopen(f"{url}/events") as stream:
        for line in stream:
            if line.startswith(b'data: {"rows"'):
                rows = json.loads(line.removeprefix(b"data: "))["rows"]
                ready.update(row["name"] for row in rows if row["kind"] == "ready")
            if len(ready) == nodes:
                return


def _used(process: int) -> str:
    status = Path(f"/proc/{process}/status").read_text()
    ticks = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    seconds = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    most = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    return f"{seconds:.1f} s of CPU, {most:.0f} MiB at most"


def _look(page: Page, url: str, server: str, options: argparse.Namespace) -> None:
    began = time.perf_counter()
    page.goto(url)
    expect(page.locator(".tile .count").first).to_have_text(f"{options.nodes:,}", timeout=60_000)
    all_seconds = time.perf_counter() - began
    print(f"first paint          {page.evaluate(_PAINTED):6.0f} ms")
    print(f"all nodes in browser {1000 * all_seconds:6.0f} ms")
    node = page.locator("table.nodes tbody a").first.inner_text()
    late = [_change(page, server, node) for _ in range(options.changes)]
    middle, most = statistics.median(late), max(late)
    print(f"a change on screen   {middle:6.0f} ms (median of {len(late)}; {most:.0f} at most)")
    for number in range(int(60 * options.minutes)):
        progress(f"watched for {number} s, load {load()}")
        _post(server, f"worker-{number % options.nodes:05}")
        page.wait_for_timeout(1000)


def _change(page: Page, server: str, node: str) -> float:
    """Milliseconds from the event of a change of a node to its paint."""
    page.evaluate("window.isWaiting = false")
    seen = page.evaluate_handle(f"() => ({{ at: ({_SEEN})({json.dumps(node)}) }})")
    while not page.evaluate("window.isWaiting"):
        page.wait_for_timeout(10)
    sent = 1000 * time.time()
    _post(server, node)
    at: float = seen.evaluate("(one) => one.at")
    page.wait_for_timeout(200)
    return at - sent


def _post(server: str, node: str) -> None:
    request = urllib.request.Request(f"{server}/report/{node}", method="POST")
    with urllib.request.urlopen(request):
        pass


if __name__ == "__main__":
    main()
