"""The enforcer on a real kernel, containerd and API server: who runs where."""

import uuid
from functools import partial

from enforcer_node import Node, assigned, eventually, spec
from played_kubelet import Kubelet, cpus_of


async def test_a_running_container_gets_its_cpu_and_all_others_leave_it(
    node: Node, kubelet: Kubelet
) -> None:
    owner, other = await kubelet.run_pod("owner"), await kubelet.run_pod("other", "besteffort")
    owner_id, other_id = await kubelet.run(owner, "main"), await kubelet.run(other, "main")
    node.assign(spec())
    await node.start()
    status = await node.applied(spec(assigned(owner.uid, "main", "1"), shared="0"))
    assert cpus_of(f"{owner.cgroup}/{owner_id}") == "1"
    assert cpus_of(f"{owner.cgroup}/{owner.sandbox_id}") == "0"
    assert cpus_of(f"{other.cgroup}/{other_id}") == "0"
    assert cpus_of(f"{other.cgroup}/{other.sandbox_id}") == "0"
    assert status["containers"] == [
        {"podUID": owner.uid, "container": "main", "cpus": "1", "mems": "0", "exclusive": True}
    ]
    assert status["pools"] == {"reserved": "0", "shared": "0", "exclusive": "1"}
    assert status["running"] == [owner.uid]
    assert status["cgroup"] == {"version": 1, "driver": "cgroupfs"}
    assert status["runtime"]["name"] == "containerd"
    assert status["topology"]["numaNodes"][0]["cpus"] == "0-1"


async def test_pinned_before_the_first_instruction(node: Node, kubelet: Kubelet) -> None:
    uids = [str(uuid.uuid4()) for _ in range(20)]
    await node.start()
    first_act = ("sh", "-c", "grep Cpus_allowed_list /proc/self/status; sleep 1000")
    for uid in uids:
        await node.applied(spec(assigned(uid, "main", "1"), shared="0"))
        pod = await kubelet.run_pod("owner", uid=uid)
        await kubelet.run(pod, "main", first_act)
        said = await eventually(partial(kubelet.output, pod, "main"))
        assert said == "Cpus_allowed_list:\t1"
        await kubelet.remove_pod(pod)
