"""Which memory a running container gets and gives back when it is resized."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_operator.placement import PodView
from support.values.placement import granted_pod, history, machine, policy

PLAIN = machine(16, threads=1, numa_nodes=2)


def a(cpus: str, memory: str) -> PodView:
    return granted_pod("a", (cpus, memory))


@pytest.mark.parametrize(
    ("fields", "memory", "mems", "sizes"),
    [
        pytest.param({"policy": "Static"}, ["1Gi", "2Gi"], "0", [2048], id="grow"),
        pytest.param({"policy": "Static"}, ["2Gi", "1Gi"], "0", [1024], id="shrink"),
        pytest.param({"policy": "Static"}, ["1Gi", "20Gi"], "0-1", [20480], id="widen-together"),
        pytest.param(
            {"policy": "Preferred"}, ["1Gi", "20Gi"], "0-1", [16384, 4096], id="widen-by-node"
        ),
        pytest.param(
            {"policy": "Static"}, ["1Gi", "20Gi", "1Gi"], "0-1", [1024], id="stays-where-it-was"
        ),
    ],
)
def test_memory_follows_and_its_numa_nodes_only_become_more(
    fields: dict[str, str], memory: list[str], mems: str, sizes: list[int]
) -> None:
    spec = history(PLAIN, policy(memory=fields), *([a("2", memory=each)] for each in memory))
    (entry,) = spec.containers
    assert str(entry.mems) == mems
    assert [one.bytes >> 20 for one in entry.memory] == sizes


def test_more_memory_is_on_the_nearest_numa_node() -> None:
    rows = ((10, 21, 12, 21), (21, 10, 21, 12), (12, 21, 10, 21), (21, 12, 21, 10))
    plain = machine(16, 1, 4)
    numa_nodes = tuple(
        replace(one, distances=row) for one, row in zip(plain.numa_nodes, rows, strict=True)
    )
    near = replace(plain, numa_nodes=numa_nodes)
    pods = [a("2", memory="1Gi")], [a("2", memory="20Gi")]
    (entry,) = history(near, policy(memory={"policy": "Preferred"}), *pods).containers
    assert (str(entry.cpus), str(entry.mems)) == ("1-2", "0,2")


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"memory": {"policy": "SingleNUMA"}}, id="SingleNUMA"),
        pytest.param(
            {"memory": {"policy": "Static"}, "topology": {"policy": "SingleNUMANode"}},
            id="SingleNUMANode",
        ),
    ],
)
def test_memory_that_does_not_fit_on_its_numa_node_waits(fields: dict[str, Any]) -> None:
    spec = history(PLAIN, policy(**fields), [a("2", memory="1Gi")], [a("3", memory="20Gi")])
    (entry,) = spec.containers
    assert (str(entry.cpus), [one.bytes >> 30 for one in entry.memory]) == ("1-3", [1])
    assert [one.reason for one in spec.refused_resizes or ()] == ["NotEnoughMemory"]
