"""A real Prometheus answers the dashboard's queries and evaluates the alerts, on real daemons."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from numapin_lab.processes.ports import choose
from numapin_lab.running_lab import BUSY, RunningLab, pod, policy
from support.real.telemetry.prometheus import Prometheus, prometheus

FILES = Path(__file__).parents[2] / "charts" / "numapin" / "files"
RULES = FILES / "numapin.rules.yaml"
DASHBOARD = json.loads((FILES / "dashboard" / "numapin.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
pytestmark = pytest.mark.from_source("Prometheus does not reach the network of pods")

OF_OTHERS = {
    "Pressure in exclusive containers",
    "Memory promised on NUMA nodes",
    "Promised memory that cannot be had",
    "Switches by exclusive CPU",
    "Other tasks and migrations",
}
"""The panels of cgroup v2, of machines with several NUMA nodes, and of kernels with SCHEDSTATS."""


@pytest.fixture
def observed(lab: RunningLab, tmp_path: Path) -> Iterator[tuple[RunningLab, Prometheus]]:
    """A lab with an exclusive, a shared and a refused pod, and a Prometheus that scrapes it.

    Memory is bound, and containers wait for their CPUs.
    """
    targets = [f"127.0.0.1:{one.port}" for one in lab.cluster.agents]
    labels = {"node": lab.node, "namespace": "numapin-system"}
    folder, port = tmp_path / "prometheus", choose(1)[0]
    with prometheus(folder, port, *targets, labels=labels, rules=[RULES]) as server:
        lab.apply(policy(memory={"policy": "Static"}, startGate="Wait"))
        lab.wait_in_force()
        lab.apply(pod("owner", BUSY, cpu="1"), pod("neighbour", BUSY))
        lab.wait_running("owner", "neighbour")
        lab.apply(pod("refused", cpu="1"))
        lab.wait_running("refused")
        lab.wait_in_force()
        yield lab, server


def unanswered(lab: RunningLab, server: Prometheus) -> set[str]:
    """The queries of the dashboard for which there is no series, each with its panel."""
    chosen = {"cluster": ".*", "job": "numapin", "node": lab.node, "__rate_interval": "15s"}
    found = set()
    for panel in PANELS:
        for target in panel.get("targets", ()):
            query = target["expr"]
            for name, value in chosen.items():
                query = query.replace(f"${name}", value)
            if not server.get("query", query=query)["result"]:
                found.add(panel["title"])
    return found


def test_every_panel_of_the_dashboard_has_series(observed: tuple[RunningLab, Prometheus]) -> None:
    lab, server = observed
    lab.wait(lambda: server.value("numapin_refused_pods") == 1, "Prometheus to see the refused pod")
    lab.wait(lambda: unanswered(lab, server) <= OF_OTHERS, "each query to have an answer")
    exclusive = "kubelet_cpu_manager_exclusive_cpu_allocation_count"
    assert server.value(exclusive) == 1


@pytest.mark.parametrize(
    ("part", "alert"), [("enforcer", "NumapinEnforcerAway"), ("operator", "NumapinNoLeader")]
)
def test_the_alert_of_a_dead_daemon_fires_and_ends(
    observed: tuple[RunningLab, Prometheus], part: str, alert: str
) -> None:
    lab, server = observed
    lab.wait(lambda: server.value('numapin_nodes{state="in_force"}') == 1, "one node in force")
    lab.wait(lambda: server.value("numapin_enforces") == 1, "Prometheus to see the enforcer")
    lab.wait(lambda: alert not in server.alerts(), f"{alert} to be inactive")
    lab.kill(part)
    lab.wait(lambda: server.alerts().get(alert) == {"firing"}, f"{alert} to fire")
    lab.restart(part)
    lab.wait(lambda: alert not in server.alerts(), f"{alert} to be over")
    (group,) = server.get("rules")["groups"]
    assert {rule["health"] for rule in group["rules"]} == {"ok"}
