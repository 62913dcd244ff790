"""Commands say the same of a node with three objects on a real API server as of one with one."""

import asyncio
from pathlib import Path

from numapin_cli.main import main
from numapin_client.client import ApiClient
from numapin_client.resources import NODE_ASSIGNMENTS, NODE_REPORTS, NODE_TOPOLOGIES, Json, Key
from numapin_lab.controlplane.servers import ControlPlane
from support.fakes.worlds.asked_cluster import Capture, ask
from support.values.forms import in_three


async def _split(admin: ApiClient, body: Json) -> None:
    """Write a NodeAssignment as lines, and what is reported of it into objects of its own."""
    key, status = Key.of(body), dict(body["status"])
    generation = body["metadata"]["generation"] + 1
    status["observedGeneration"] = generation
    changed = body | {"metadata": body["metadata"] | {"generation": generation}, "status": status}
    made = in_three(changed)
    await admin.update(NODE_ASSIGNMENTS, made.assignment)
    told = dict.fromkeys(status) | made.assignment["status"]
    await admin.merge_patch(NODE_ASSIGNMENTS, key, {"status": told}, subresource="status")
    for resource, part in ((NODE_REPORTS, made.report), (NODE_TOPOLOGIES, made.topology)):
        await admin.create(resource, {"metadata": {"name": key.name}})
        patch = {"status": part["status"]}
        await admin.merge_patch(resource, key, patch, subresource="status")


async def test_three_objects_of_a_node_say_what_one_said(
    plane: ControlPlane, admin: ApiClient, tmp_path: Path, capsys: Capture
) -> None:
    """It leaves the nodes with three objects, which no test before must see."""

    async def answers(*flags: str) -> list[tuple[int, str]]:
        found = []
        for words in ("get", "get node-1", "explain b -o json", "explain node/node-2"):
            if flags:
                status = await asyncio.to_thread(main, [*words.split(), *flags])
            else:
                status = await ask(plane.kubeconfig, *words.split())
            captured = capsys.readouterr()
            assert captured.err == ""
            found.append((status, captured.out))
        return found

    before = await answers()
    for name in ("node-1", "node-2"):
        await _split(admin, await admin.get(NODE_ASSIGNMENTS, Key(name)))
    stored = await admin.get(NODE_ASSIGNMENTS, Key("node-1"))
    assert stored["spec"].keys() >= {"assigned", "pools"}
    assert "containers" not in stored["spec"]
    assert "conditions" not in stored["status"]
    assert await answers() == before
    now = await asyncio.to_thread(
        plane.kubectl,
        "get",
        "nodes,ns,pods,cpupol,nodeasg,nodereports,nodetopologies",
        "-A",
        "-o",
        "json",
    )
    (tmp_path / "now.json").write_text(now)
    assert await answers("--cluster", str(tmp_path / "now.json")) == before
    (tmp_path / "sys").mkdir()
    report = str(tmp_path / "report.tar.gz")
    assert await ask(plane.kubeconfig, "report", "-o", report, "--root", str(tmp_path)) == 3
    capsys.readouterr()
    assert await answers("--cluster", report) == before
