"""An enforcer that is stopped or can do nothing keeps the lock; the standby fences meanwhile."""

import signal
import sys
from pathlib import Path

from numapin_enforcer.standby.fencing import ENFORCER_AWAY, ENFORCER_HANGS
from numapin_lab.node.played_kubelet import Kubelet, Pod
from support.real.enforcer_node import Node, assigned, spec
from support.real.kernel_cgroups import cpus_of, write_cpus
from support.real.waiting import eventually

PRINT_CPUS = ("grep", "Cpus_allowed_list", "/proc/self/status")


async def test_new_pods_are_fenced_while_the_enforcer_is_stopped(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    _, cgroup = exclusive
    before = await kubelet.run_pod("before")
    await eventually(lambda: cpus_of(before.cgroup) == "0")
    standby = await node.stand_by()
    assert node.process is not None
    node.process.send_signal(signal.SIGSTOP)
    try:
        await eventually(lambda: ENFORCER_HANGS in node.standby_log)
        (_, best_effort) = kubelet.classes
        write_cpus(best_effort, "0-1")
        pod = await kubelet.run_pod("new")
        await kubelet.run(pod, "main", PRINT_CPUS)
        printed = str(await eventually(lambda: kubelet.output(pod, "main")))
        assert printed.rsplit(maxsplit=1)[-1] == "0"
        assert (cpus_of(pod.cgroup), cpus_of(cgroup)) == ("0", "1")
        assert cpus_of(best_effort) == "0-1", "what was set before is the enforcer's"
    finally:
        node.process.send_signal(signal.SIGCONT)
    await eventually(lambda: cpus_of(best_effort) == "0", "the enforcer to go on")
    await eventually(lambda: "the enforcer goes on" in node.standby_log)
    assert not node.ended()
    assert ENFORCER_AWAY not in node.standby_log
    await node.stop(signal.SIGKILL)
    await eventually(lambda: ENFORCER_AWAY in node.standby_log)
    assert standby.poll() is None
    assert "Traceback" not in node.standby_log


FAILING = """
import pathlib, sys
from numapin_enforcer.agent import Agent
sound, broken = Agent._observe_node, pathlib.Path(sys.argv[1])
def observe(self, **arguments):
    if broken.exists():
        raise RuntimeError("a defect that comes back with each pass")
    sound(self, **arguments)
Agent._observe_node = observe
from numapin_enforcer.__main__ import main
main(sys.argv[5:])
"""
"""The enforcer, each pass of which fails while the file that is named first exists."""


async def test_new_pods_are_fenced_while_each_pass_of_the_enforcer_fails(
    node: Node, kubelet: Kubelet, tmp_path: Path
) -> None:
    """It lives, has the lock and answers /healthz: a restart would fail alike."""
    broken = tmp_path / "broken"
    pod = await kubelet.run_pod("exclusive")
    cgroup = f"{pod.cgroup}/{await kubelet.run(pod, 'main')}"
    await node.start([sys.executable, "-c", FAILING, str(broken)])
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
    await eventually(node.reports_exclusive)
    await node.stand_by()
    broken.touch()
    await eventually(lambda: ENFORCER_HANGS in node.standby_log, "the standby to notice")
    status, said = node.probe("healthz")
    assert (status, "could do nothing" in said) == (200, True)
    assert node.probe("readyz")[0] == 503
    await eventually(lambda: node.condition("Ready")[:2] == ("False", "InternalError"))
    new = await kubelet.run_pod("new")
    await kubelet.run(new, "main", PRINT_CPUS)
    printed = str(await eventually(lambda: kubelet.output(new, "main")))
    assert printed.rsplit(maxsplit=1)[-1] == "0"
    assert (cpus_of(new.cgroup), cpus_of(cgroup)) == ("0", "1")
    assert node.standby_log.count(ENFORCER_AWAY) == 0, "the lock is the enforcer's"
    broken.unlink()
    await eventually(lambda: "the enforcer goes on" in node.standby_log)
    await eventually(node.in_force, "the next pass")
    assert node.probe("healthz") == (200, "ok\n")
    assert (cpus_of(new.cgroup), cpus_of(cgroup)) == ("0", "1")
    assert not node.ended()
