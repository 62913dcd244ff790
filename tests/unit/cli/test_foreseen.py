"""`numapin plan` foresees what the operator writes, whatever the policies and pods are."""

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_cli.main import main
from support.fakes.worlds.described_cluster import NAMESPACES, NODES, World
from support.values.operator import Body, pod_body

SELECTOR = st.sampled_from([None, {}, {"matchLabels": {"team": "a"}}])


POLICIES = st.fixed_dictionaries(
    # plan shows the end, which the operator writes after the delay and the roll-out
    {"releaseDelay": st.just("0s"), "rollout": st.just({"maxConcurrent": "100%"})},
    optional={
        "mode": st.sampled_from(["Static", "Static", "Static", "None", "Dynamic"]),
        "nodeSelector": st.sampled_from([{}, {"pool": "node-1"}, {"pool": "none"}]),
        "priority": st.integers(-1, 1),
        "reserved": st.sampled_from(
            [{}, {"count": 1}, {"cpus": "0-1", "strict": True}, {"count": 7}, {"cpus": "9"}]
        ),
        "options": st.sampled_from([{"fullPCPUsOnly": True}, {"distributeCPUsAcrossCores": True}]),
        "topology": st.sampled_from([{"policy": "SingleNUMANode"}, {"scope": "Pod"}]),
        "memory": st.sampled_from([{"policy": "Static"}, {"policy": "Preferred"}]),
        "pods": st.fixed_dictionaries(
            {}, optional={"namespaceSelector": SELECTOR, "podSelector": SELECTOR}
        ),
        "isolation": st.sampled_from(["Cpuset", "Cpuset", "Partition"]),
        "onUnsatisfiable": st.sampled_from(["Share", "Evict", "Hold"]),
    },
)


@st.composite
def pods(draw: st.DrawFn, prefix: str) -> list[Body]:
    made = []
    for number in range(draw(st.integers(0, 5))):
        body = pod_body(
            f"{prefix}-{number}",
            draw(st.sampled_from(["1", "2", "3", "500m", "9"])),
            node=draw(st.sampled_from([*NODES, ""])),
            namespace=draw(st.sampled_from(list(NAMESPACES))),
            labels=draw(st.sampled_from([{}, {"team": "a"}])),
            bound=draw(st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"])),
        )
        if draw(st.integers(0, 5)) == 0:
            body["metadata"]["deletionTimestamp"] = "2026-01-03T00:00:00Z"
        if draw(st.integers(0, 7)) == 0:
            body["spec"]["containers"][0]["name"] = ""  # what no API server stores; it shares
        made.append(body)
    return made


def foreseen(folder: Path, capsys: pytest.CaptureFixture[str], *files: str) -> dict[str, str]:
    capsys.readouterr()
    arguments = ["plan", "--cluster", str(folder / "now.json"), "-o", "json"]
    for number, text in enumerate(files):
        (folder / f"{number}.json").write_text(text)
        arguments += ["-f", str(folder / f"{number}.json")]
    status = main(arguments)
    captured = capsys.readouterr()
    assert captured.out, f"status {status}: {captured.err}"
    listed = json.loads(captured.out)["nodes"]
    return {one["node"]: json.dumps(one["spec"]) for one in listed if one["spec"] is not None}


@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(POLICIES, POLICIES, POLICIES, pods("old"), pods("new"))
def test_the_operator_writes_what_plan_foresees(  # noqa: PLR0917
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    first: Body,
    other: Body,
    edited: Body,
    old: list[Body],
    new: list[Body],
) -> None:
    """A dump alone, taken before the operator observes new pods; then an edit of a policy."""
    # What differs in defaults alone is no new generation for an API server, but for the fake one.
    assume(CpuPolicySpec.model_validate(first) != CpuPolicySpec.model_validate(edited))

    async def play() -> None:
        world = World()
        world.cluster.put_policy("web", first)
        world.cluster.put_policy("other", other, created="2025-01-01T00:00:00Z")
        world.add_pods(old)
        await world.settle()
        world.add_pods(new)
        (tmp_path / "now.json").write_text(world.dump())
        expected = foreseen(tmp_path, capsys)
        await world.operator.work_until_idle()
        assert world.specs() == expected
        (tmp_path / "now.json").write_text(world.dump())
        kind = {"apiVersion": "numapin.io/v1beta1", "kind": "CpuPolicy"}
        policy = kind | {"metadata": {"name": "web"}, "spec": edited}
        expected = foreseen(tmp_path, capsys, json.dumps(policy))
        world.cluster.put_policy("web", edited)
        world.operator.observe()
        await world.operator.work_until_idle()
        assert world.specs() == expected

    asyncio.run(play())
