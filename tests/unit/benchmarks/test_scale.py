"""The large cluster of the benchmark: its machines, its logins, and what is taken off its costs."""

import json
from collections import Counter
from dataclasses import astuple
from pathlib import Path

import pytest

from numapin_benchmarks.scale.population import EXCLUSIVE_CPUS, Size, machines
from numapin_benchmarks.scale.steps.used import Served, Times
from numapin_client.login.credentials import FixedCredential, Login
from numapin_lab.played.machines import captured, cpu_count
from numapin_lab.played.node_logins import as_nodes, write_tokens, writes_as


@pytest.mark.parametrize("exclusive", [15, 125, 250])
def test_all_pods_of_a_node_fit_on_each_machine(exclusive: int) -> None:
    wanted = [int(EXCLUSIVE_CPUS[number % len(EXCLUSIVE_CPUS)]) for number in range(exclusive)]
    smallest = min(map(cpu_count, machines(Size(1, exclusive, exclusive))))
    assert smallest > sum(wanted)


def test_usual_sizes_have_captured_machines() -> None:
    assert machines(Size(1, 30, 15)) == captured()


def test_what_an_idle_cluster_uses_in_that_time_is_taken_off() -> None:
    requests = Counter({("PUT", "nodeassignments", ""): 7})
    idle = Served(Times(30.0, 3.0, 0.6, 0.3), 300.0, 600.0, Counter())
    used = Served(Times(10.0, 5.0, 1.2, 0.6), 1100.0, 2200.0, requests)

    left = used.without(idle)

    assert astuple(left.times) == pytest.approx((10.0, 4.0, 1.0, 0.5))
    assert (left.put_bytes, left.wal_bytes) == pytest.approx((1000.0, 2000.0))
    assert left.writes() == {"PUT nodeassignments": 7}
    assert used.api_percent == 50.0


class Certificate:
    """Proves the identity without a header."""

    async def authorization(self) -> None:
        return None

    async def renew(self) -> None:
        return None


async def test_a_task_that_plays_a_node_has_its_token(tmp_path: Path) -> None:
    """The administrator's kubeconfig may have several credentials, some of which have no header."""
    own = (Certificate(), FixedCredential("Bearer admin"))
    tokens = tmp_path / "tokens.json"
    write_tokens(tokens, {"node-1": "one", "node-2": "two"})
    login = as_nodes(Login("https://127.0.0.1:1", "a test", own), tokens)
    (credential,) = login.credentials

    assert await credential.authorization() == "Bearer admin"
    before = writes_as.set("node-2")
    assert await credential.authorization() == "Bearer two"
    writes_as.reset(before)
    assert await credential.authorization() == "Bearer admin"
    assert tokens.stat().st_mode & 0o077 == 0
    assert json.loads(tokens.read_text()).keys() == {"node-1", "node-2"}
