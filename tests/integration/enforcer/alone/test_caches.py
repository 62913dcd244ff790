"""A node without cache allocation says so, and pins CPUs as ever."""

from pathlib import Path

import pytest

from numapin_lab.node.played_kubelet import Pod
from support.real.enforcer_node import Node, assigned, spec
from support.real.kernel_cgroups import cpus_of
from support.real.waiting import eventually

HAS_RESCTRL = Path("/sys/fs/resctrl/schemata").exists()
CACHE = {"classes": {"exclusive": {"l3Percent": 40}, "others": {"memoryBandwidthPercent": 50}}}


@pytest.mark.skipif(HAS_RESCTRL, reason="this machine shares out caches")
async def test_without_resctrl_the_report_says_what_is_missing(
    node: Node, exclusive: tuple[Pod, str]
) -> None:
    pod, cgroup = exclusive
    entry = assigned(pod.uid, "main", "1")
    node.assign(spec(entry, shared="0", cache=CACHE))
    await eventually(lambda: node.condition("Ready")[1] == "CacheNotSharedOut")
    assert node.condition("Ready")[0] == "True"
    assert "mount -t resctrl resctrl /sys/fs/resctrl" in node.condition("Ready")[2]
    assert node.condition("Stalled")[0] == "False"
    cache = node.status["cache"]
    assert (cache["cpus"], cache["schemata"]) == ("", "")
    assert "component resctrl" in cache["message"]
    assert cpus_of(cgroup) == "1"
    await node.applied(spec(entry, shared="0"))
    assert "cache" not in node.status
