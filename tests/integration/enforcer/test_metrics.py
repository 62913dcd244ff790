"""The enforcer's metrics: a real Prometheus reads them, and they say what runs on the CPUs."""

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from numapin_enforcer.telemetry.table import CACHE_OCCUPANCY, MEMORY_TRAFFIC, METRICS, OF_CPUS
from numapin_lab.node.played_kubelet import Kubelet
from numapin_lab.processes.ports import choose
from support.real.enforcer_node import Node, assigned, spec
from support.real.telemetry.prometheus import lint, parse, prometheus
from support.real.waiting import eventually

BUSY = ("sh", "-c", "while :; do :; done")
OF_V2 = {"numapin_pressure_stall_seconds_total"}
OF_SEVERAL_NUMA_NODES = {"numapin_promised_memory_bytes"}
OF_RESCTRL = {CACHE_OCCUPANCY.name, MEMORY_TRAFFIC.name}
OF_EACH_CONTAINER = {one.name for one in METRICS if "container" in one.labels}


@contextmanager
def foreign_task(cpu: str) -> Iterator[None]:
    """A busy process of no container on a CPU."""
    process = subprocess.Popen(["taskset", "-c", cpu, *BUSY])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def values(node: Node) -> dict[str, dict[str, float]]:
    status, page = node.probe("metrics")
    assert status == 200, page
    return parse(page)


async def test_prometheus_scrapes_every_metric_with_its_type(
    node: Node, kubelet: Kubelet, tmp_path: Path
) -> None:
    pod = await kubelet.run_pod("exclusive")
    await kubelet.run(pod, "main")
    await node.start()
    with prometheus(tmp_path / "prometheus", choose(1)[0], f"127.0.0.1:{node.port}") as server:
        await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
        await eventually(
            lambda: server.value("kubelet_cpu_manager_exclusive_cpu_allocation_count") == 1
        )
        types = server.types()
    found = {name: kind for name, kind in types.items() if name.startswith(("numapin", "kubelet"))}
    expected = {one.name: str(one.kind) for one in METRICS if not one.name.startswith("process")}
    not_here = expected.keys() & (OF_V2 | OF_SEVERAL_NUMA_NODES | OF_RESCTRL) - found.keys()
    for name in OF_EACH_CONTAINER | {one.name for one in OF_CPUS} | not_here:
        expected.pop(name)
    assert found == expected


async def test_promtool_finds_fault_with_nothing_but_names_of_the_kubelet(
    node: Node, exclusive: object
) -> None:
    faults = lint(node.probe("metrics")[1])
    assert faults
    assert {name for name in faults if not name.startswith("kubelet_")} == set()


async def test_the_series_do_not_grow_with_pods_that_come_and_go(
    node: Node, kubelet: Kubelet
) -> None:
    await node.start()
    counts = set()
    for _ in range(5):
        uid = str(uuid.uuid4())
        await node.applied(spec(assigned(uid, "main", "1"), shared="0"))
        pod = await kubelet.run_pod("exclusive", uid=uid)
        await kubelet.run(pod, "main")
        await eventually(node.reports_exclusive)
        found = values(node)
        counts.add(sum(map(len, found.values())))
        assert found["kubelet_cpu_manager_exclusive_cpu_allocation_count"] == {"": 1}
        await kubelet.remove_pod(pod)
    assert len(counts) == 1

    def requests() -> bool:
        return values(node)["kubelet_cpu_manager_pinning_requests_total"] == {"": 5}

    await eventually(requests, "all pods to be counted")
    assert values(node)["numapin_container_in_force_seconds_count"] == {"": 5}


async def test_a_busy_foreign_process_on_an_exclusive_cpu_is_seen(
    node: Node, kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is seen to be gone is tested where nothing else uses the CPUs."""
    pod = await kubelet.run_pod("exclusive")
    await kubelet.run(pod, "main", BUSY)
    monkeypatch.setenv("NUMAPIN_CONTAINER_METRICS", "true")
    await node.start()
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
    before = await eventually(lambda: measured(node), "a first sample")
    with foreign_task("1"):
        await eventually(lambda: mispinned(node) == 1, "the foreign task")

        def risen() -> bool:
            return all(now > then + 1 for now, then in zip(measured(node), before, strict=True))

        await eventually(risen, "overlap and run delay")


async def test_interrupts_and_migrations_are_counted_if_they_are_asked_for(
    node: Node, kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = await kubelet.run_pod("exclusive")
    await kubelet.run(pod, "main", BUSY)
    monkeypatch.setenv("NUMAPIN_CPU_METRICS", "true")
    await node.start()
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))

    def counted() -> bool:
        found = values(node)
        timer = 'interrupt="Local timer interrupts"'
        return (
            found.get("numapin_exclusive_cpu_interrupts_total", {}).get('cpu="1"', 0) > 0
            and found.get("numapin_interrupts_total", {}).get(timer, 0) > 0
            and "numapin_migrations_total" in found
        )

    await eventually(counted, "interrupts of the exclusive CPU")


def mispinned(node: Node) -> float:
    return values(node)["numapin_mispinned_containers"]['reason="ForeignTasks"']


def measured(node: Node) -> tuple[float, ...]:
    """Overlap and run delay, of all exclusive containers and of the only one; none before it is."""
    found = values(node)
    names = ("overlap_seconds_total", "run_delay_seconds_total")
    totals = [found[f"numapin_{name}"][""] for name in names]
    own = [sum(found.get(f"numapin_container_{name}", {}).values()) for name in names]
    seen = all(f"numapin_container_{name}" in found for name in names)
    return (*totals, *own) if seen else ()
