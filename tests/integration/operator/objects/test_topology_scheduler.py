"""The scheduler plug-in NodeResourceTopologyMatch with what the operator publishes.

It is a small run of a benchmark: real scheduler, API server and operator, and two played nodes with
7 and 8 CPUs for containers on their NUMA nodes. Each has room for two pods of 5 CPUs, and by number
for three. With the objects those that find no room wait until another one has ended.
"""

from pathlib import Path

import pytest

from numapin_benchmarks.scheduling.__main__ import PLUG_IN, WITH_OBJECTS, run
from numapin_benchmarks.scheduling.pods import Pod
from numapin_lab.components.build import provide
from numapin_lab.components.catalog import TOPOLOGY_SCHEDULER
from support.suite.left_out import since_kubernetes

pytestmark = since_kubernetes("1.34")  # the plug-in is a scheduler of 1.34, which watches claims
NODES = 2
PODS = [Pod(f"pod-{at}", 5, at / 5, 8.0 if at < 4 else 2.0) for at in range(6)]
RESYNC_SECONDS = 3


@pytest.mark.parametrize(
    ("chosen", "refused"),
    [
        pytest.param(WITH_OBJECTS, 0, id="objects"),
        pytest.param(PLUG_IN, 2, id="no objects"),
    ],
)
def test_no_pod_is_bound_where_no_numa_node_has_room(
    chosen: str, refused: int, tmp_path: Path
) -> None:
    provide([TOPOLOGY_SCHEDULER.name])
    fates = run(tmp_path, chosen, NODES, PODS, RESYNC_SECONDS)
    assert fates.bound.keys() == {one.name for one in PODS}
    assert len(fates.refused) == refused
