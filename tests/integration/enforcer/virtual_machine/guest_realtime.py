"""Real-time threads of a pod in a shared pool of one CPU, beside the real enforcer and standby.

Not collected on the host, whose CPU they would take: test_in_virtual_machine.py runs this. There is
neither an API server nor a runtime: both programs follow a saved assignment.
"""

import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from numapin_enforcer.node.realtime import DEFAULT_PRIORITY
from numapin_enforcer.standby.fencing import ENFORCER_HANGS, STANDING_BY
from support.real.saved_node import CGROUPS, IDS, SavedNode, make, until

PODS = CGROUPS / "kubepods"
OWNER = "kubepods/podowner"
OURS, TENANT = "kubepods/besteffort/podnumapin", "kubepods/burstable/podtenant"
CONTAINER = {"podUID": "owner", "namespace": "d", "pod": "owner", "container": "main"}
SPEC = {
    "mode": "Static",
    "pools": {"reserved": "0", "shared": "0"},
    "containers": [CONTAINER | {"cpus": "2-3", "mems": "", "exclusive": True}],
    "refused": [],
}
METRICS_ADDRESS = "127.0.0.1:8099"
SCRAPE_SECONDS = 10.0
"""Prometheus' default of `scrape_timeout`."""
LOOP = ("sh", "-c", "while :; do :; done")


def cpus_of(folder: Path) -> str:
    return (folder / "cpuset.cpus.effective").read_text().strip()


@dataclass
class Guest(SavedNode):
    """Both programs in a pod of the shared pool, which is CPU 0; CPUs 2 and 3 are exclusive."""

    tenant: Path

    def start(self) -> subprocess.Popen[bytes]:
        """Start the enforcer, and wait until it enforces."""
        enforcer = self.enforcer(f"--health-address={METRICS_ADDRESS}")
        until(lambda: cpus_of(self.tenant) == "0", "the enforcer")
        return enforcer

    def fences(self, name: str) -> bool:
        """Make a Guaranteed pod as the kubelet does, and wait until it is off exclusive CPUs."""
        pod = make(f"kubepods/pod{name}")
        box = make(f"kubepods/pod{name}/{next(IDS)}")
        self.spawn(box, "sleep", "10000")
        until(lambda: cpus_of(pod) == cpus_of(box) == "0", f"pod {name} to be fenced")
        return True


def is_scraped() -> bool:
    """Whether the enforcer answers as Prometheus asks."""
    try:
        with urllib.request.urlopen(
            f"http://{METRICS_ADDRESS}/metrics", timeout=SCRAPE_SECONDS
        ) as page:
            return "numapin_enforces" in page.read().decode()
    except OSError:
        return False


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[Guest]:
    for path in ("kubepods", "kubepods/burstable", "kubepods/besteffort", OWNER, OURS, TENANT):
        make(path)
    owner, ours, tenant = (make(f"{path}/{next(IDS)}") for path in (OWNER, OURS, TENANT))
    made = Guest(tmp_path, ours, tenant)
    made.spawn(owner, "sleep", "10000")
    (owner / "cpuset.cpus").write_text("2-3")
    made.save(SPEC)
    yield made
    made.end()
    for folder, _, _ in os.walk(PODS, topdown=False):
        Path(folder).rmdir()


def test_a_real_time_thread_in_the_pool_switches_neither_enforcer_nor_standby_off(
    guest: Guest,
) -> None:
    """It has the highest priority that is below theirs, and never waits."""
    enforcer = guest.start()
    guest.launch("standby", "numapin_enforcer.standby")
    until(lambda: STANDING_BY in guest.log("standby"), "the standby")
    guest.spawn(guest.tenant, "chrt", "-f", str(DEFAULT_PRIORITY - 1), *LOOP)
    assert guest.fences("first")
    (PODS / "burstable/cpuset.cpus").write_text("0-3")
    until(lambda: cpus_of(PODS / "burstable") == "0", "the overwritten class to be restored")
    enforcer.send_signal(signal.SIGSTOP)
    until(lambda: ENFORCER_HANGS in guest.log("standby"), "the standby to notice")
    assert guest.fences("second")
    enforcer.send_signal(signal.SIGCONT)
    until(lambda: "the enforcer goes on" in guest.log("standby"), "the enforcer to go on")
    enforcer.kill()
    assert guest.fences("third")


def test_a_real_time_thread_above_the_enforcer_leaves_it_without_an_answer_to_a_scrape(
    guest: Guest,
) -> None:
    """So NumapinEnforcerAway fires: its own tests have an enforcer that is not scraped."""
    guest.start()
    until(is_scraped, "the metrics")
    hog = guest.spawn(guest.tenant, "chrt", "-f", "99", *LOOP)
    until(lambda: not is_scraped(), "the enforcer to be starved")
    assert not is_scraped()
    (PODS / "burstable/cpuset.cpus").write_text("0-3")
    time.sleep(SCRAPE_SECONDS)
    assert cpus_of(PODS / "burstable") == "0-3", "documented: nothing is reverted meanwhile"
    hog.kill()
    until(is_scraped, "the enforcer to go on")
    until(lambda: cpus_of(PODS / "burstable") == "0", "the overwritten class to be restored")
