"""What an edit would change, planned in the background: nodes before and after."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from numapin_cli.inputs.described_cluster import DescribedCluster, in_a_cluster
from numapin_cli.inputs.objects import read_objects
from numapin_cli.subcommand import CommandError
from numapin_client.errors import ConnectionFailedError
from numapin_page.live.planned import Planned
from support.page.pictured_cluster import dump, of_kind, pictured
from support.values.operator import Body

XEON, LAPTOP = "xeon-2s2n-24c-smt2", "laptop-1s1n-4c-smt2"


@pytest.fixture(scope="module")
def items() -> list[Body]:
    laptop = pictured(LAPTOP, "laptop", "2")
    others = [one for one in laptop if one["kind"] in {"Node", "NodeAssignment", "Pod"}]
    return [*pictured(XEON, "xeon", "8", "20"), *others]


def reading(
    items: list[Body], folder: Path, **spec: Any
) -> Callable[[], Awaitable[DescribedCluster]]:
    """Reads the cluster with fields of its policy edited."""
    policy = of_kind(items, "CpuPolicy")
    edited = {key: policy[key] for key in ("apiVersion", "kind")}
    edited |= {"metadata": {"name": policy["metadata"]["name"]}, "spec": policy["spec"] | spec}
    for name, objects in (("cluster", items), ("edit", [edited])):
        (folder / f"{name}.json").write_text(dump(objects))

    async def read() -> DescribedCluster:
        objects = read_objects([folder / "cluster.json"], [folder / "edit.json"])
        return in_a_cluster(objects, None, None)

    return read


async def planned(read: Callable[[], Awaitable[DescribedCluster]]) -> Planned:
    found = Planned(read)
    assert found.status(0)["nodes"] == 0
    await found.run()
    return found


async def test_each_node_that_would_change_is_shown_with_how(
    items: list[Body], tmp_path: Path
) -> None:
    found = await planned(reading(items, tmp_path, reserved={"cpus": "0,4"}))
    status = found.status(0)
    assert (status["nodes"], status["planned"], status["problem"]) == (2, 2, "")
    rows = {one["name"]: one for one in status["rows"]}
    assert rows["xeon"]["reserved"] == ["0,24", "0"]
    said = rows["xeon"]["said"]
    assert said.startswith("WaitingForContainers: ")
    assert "default/xeon-0/main uses 4, which is reserved now" in said
    assert found.status(len(rows))["rows"] == []


async def test_a_node_is_drawn_before_and_after(items: list[Body], tmp_path: Path) -> None:
    found = await planned(reading(items, tmp_path, mode="None"))
    page = await found.node("xeon")
    assert page["row"]["mode"] == ["Static", "None"]
    assert page["row"]["moved"] == 2
    assert page["before"].keys() == page["after"].keys()
    first = page["containers"][0]
    held = [int(cpu) for cpu, use in page["before"].items() if use == 0]
    assert (first["pod"], len(held), first["after"]) == ("xeon-0", 8, "")
    assert set(page["after"].values()) == {"shared"}


async def test_what_changes_nothing_is_left_out(items: list[Body], tmp_path: Path) -> None:
    found = await planned(reading(items, tmp_path))
    assert found.status(0)["planned"] == 2
    assert found.status(0)["rows"] == []


@pytest.mark.parametrize(
    "error",
    [CommandError("no CpuPolicy is given"), ConnectionFailedError("GET /", "no answer in time")],
    ids=["files", "server"],
)
async def test_what_cannot_be_read_is_said(error: Exception) -> None:
    async def read() -> DescribedCluster:
        raise error

    found = await planned(read)
    assert str(error) in found.status(0)["problem"]
    with pytest.raises(CommandError, match="node x is not planned"):
        await found.node("x")
