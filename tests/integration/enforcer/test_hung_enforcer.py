"""An enforcer that is stopped keeps the lock; the standby fences new pods meanwhile."""

import signal

from numapin_enforcer.standby.fencing import ENFORCER_AWAY, ENFORCER_HANGS
from support.real.enforcer_node import Node
from support.real.played_kubelet import Kubelet, Pod, cpus_of, write_cpus
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
