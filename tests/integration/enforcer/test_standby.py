"""While the enforcer is down, no new pod ever runs on an exclusive CPU of another."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from numapin_enforcer.standby.fencing import ENFORCER_AWAY
from numapin_lab.node.played_kubelet import Kubelet, Pod
from support.real.enforcer_node import Node, assigned, spec
from support.real.kernel_cgroups import CPUSET, cpus_of, write_cpus
from support.real.waiting import PATIENCE_SECONDS, eventually

PRINT_CPUS = ("grep", "Cpus_allowed_list", "/proc/self/status")
NEW_PODS = 5
BACK = "the enforcer runs again"


async def standing_in(node: Node) -> None:
    await eventually(lambda: ENFORCER_AWAY in node.standby_log, "the standby to start fencing")


async def alone(node: Node) -> subprocess.Popen[bytes]:
    """Kill the enforcer; the standby fences from now on."""
    standby = await node.stand_by()
    await node.stop(signal.SIGKILL)
    await standing_in(node)
    return standby


async def end(process: subprocess.Popen[bytes], number: int = signal.SIGTERM) -> int:
    process.send_signal(number)
    return await asyncio.to_thread(process.wait, PATIENCE_SECONDS)


async def first_words(kubelet: Kubelet, pod: Pod) -> str:
    """The allowed CPUs that the first program of a new container prints."""
    await kubelet.run(pod, "main", PRINT_CPUS)
    return str(await eventually(lambda: kubelet.output(pod, "main"))).split()[-1]


async def test_pods_created_while_the_enforcer_is_down_never_run_on_exclusive_cpus(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    _, cgroup = exclusive
    await node.stand_by()
    await node.stop(signal.SIGKILL)
    for number in range(NEW_PODS):
        pod = await kubelet.run_pod(f"new-{number}")
        assert await first_words(kubelet, pod) == "0"
        assert cpus_of(f"{pod.cgroup}/{pod.sandbox_id}") == "0"
        assert cpus_of(pod.cgroup) == "0"
    assert cpus_of(cgroup) == "1"


async def test_a_sidecar_created_while_the_enforcer_is_down_stays_off_its_pods_exclusive_cpus(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    pod, cgroup = exclusive
    await alone(node)
    sidecar = await kubelet.run(pod, "sidecar")
    await eventually(lambda: cpus_of(f"{pod.cgroup}/{sidecar}") == "0")
    assert cpus_of(cgroup) == "1"


async def test_the_standby_writes_nothing_after_the_enforcer_is_back(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    first, cgroup = exclusive
    standby = await alone(node)
    second = await kubelet.run_pod("second")
    main = f"{second.cgroup}/{await kubelet.run(second, 'main')}"
    await node.start()
    await eventually(lambda: BACK in node.standby_log)
    await node.applied(spec(assigned(second.uid, "main", "0"), shared="1", reserved="1"))
    assert (cpus_of(main), cpus_of(cgroup)) == ("0", "1")
    third = await kubelet.run_pod("third")
    await eventually(lambda: cpus_of(third.cgroup) == "1")
    assert node.standby_log.count(ENFORCER_AWAY) == 1
    assert first.uid != second.uid
    assert await end(standby) == 0


async def test_fencing_starts_and_ends_with_each_end_and_start_of_the_enforcer(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    _, cgroup = exclusive
    await node.stand_by()
    for number in range(1, 4):
        await node.stop(signal.SIGKILL)
        await eventually(lambda: node.standby_log.count(ENFORCER_AWAY) == number)  # noqa: B023
        pod = await kubelet.run_pod(f"new-{number}")
        await eventually(lambda: cpus_of(pod.cgroup) == "0")  # noqa: B023
        await node.start()
        await eventually(lambda: node.standby_log.count(BACK) == number)  # noqa: B023
        await eventually(node.in_force)
    assert cpus_of(cgroup) == "1"


async def test_a_standby_that_starts_after_the_enforcer_died_still_fences(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    await node.stop(signal.SIGKILL)
    pod = await kubelet.run_pod("new")
    assert cpus_of(pod.cgroup) == "0-1"
    standby = await node.stand_by()
    await eventually(lambda: cpus_of(pod.cgroup) == "0")
    fenced = f"fenced cgroup={pod.cgroup} cpuset.cpus=0"
    await eventually(lambda: fenced in node.standby_log)
    assert await end(standby, signal.SIGKILL) == -signal.SIGKILL
    later = await kubelet.run_pod("later")
    await node.stand_by()
    await eventually(lambda: cpus_of(later.cgroup) == "0")
    assert cpus_of(exclusive[1]) == "1"


async def test_one_standby_is_there_at_each_moment_of_an_upgrade_of_both(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str], tmp_path: Path
) -> None:
    """The last standby is deleted when the next one is ready; the enforcer at any time."""
    old, new = tmp_path / "old-ready", tmp_path / "new-ready"
    new.touch()  # left by a process that was killed
    last = await node.stand_by(**{"ready-file": str(old)})
    await eventually(old.exists)
    await node.stop(signal.SIGKILL)
    await standing_in(node)
    following = await node.stand_by(**{"ready-file": str(new)})
    await eventually(new.exists)
    await end(last, signal.SIGKILL)
    pod = await kubelet.run_pod("new")
    assert await first_words(kubelet, pod) == "0"
    assert cpus_of(exclusive[1]) == "1"
    assert await end(following) == 0
    assert not new.exists()


async def test_cpusets_widened_by_others_are_narrowed_again(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    await alone(node)
    (_, best_effort) = kubelet.classes
    write_cpus(best_effort, "0-1")
    await eventually(lambda: cpus_of(best_effort) == "0")
    assert cpus_of(exclusive[1]) == "1"


def _foreign(state: Path) -> None:
    copy = state / "assignment.json"
    copy.write_text(json.dumps(json.loads(copy.read_text()) | {"node": "another"}))


def _gone(state: Path) -> None:
    (state / "assignment.json").unlink()


def _static(state: Path) -> None:
    (state.parent / "kubelet").mkdir()
    (state.parent / "kubelet" / "cpu_manager_state").write_text('{"policyName": "static"}')


@pytest.mark.parametrize(
    "make", [_foreign, _gone, _static], ids=["another node's copy", "no copy", "a static kubelet"]
)
@pytest.mark.usefixtures("exclusive")
async def test_without_a_valid_assignment_nothing_is_changed(
    node: Node, kubelet: Kubelet, make: object
) -> None:
    await node.stop(signal.SIGKILL)
    assert callable(make)
    make(Path(node.options["state-dir"]))
    standby = await node.stand_by()
    await standing_in(node)
    pod = await kubelet.run_pod("new")
    assert await first_words(kubelet, pod) == "0-1"
    assert await end(standby) == 0
    assert cpus_of(pod.cgroup) == "0-1"


async def test_it_waits_for_an_enforcer_that_was_never_there(
    node: Node, kubelet: Kubelet, tmp_path: Path
) -> None:
    standby = await node.stand_by()
    pod = await kubelet.run_pod("exclusive")
    cgroup = f"{pod.cgroup}/{await kubelet.run(pod, 'main')}"
    assert not (tmp_path / "state").exists()
    await node.start()
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
    await eventually(node.reports_exclusive)
    await node.stop()
    await standing_in(node)
    new = await kubelet.run_pod("new")
    await eventually(lambda: cpus_of(new.cgroup) == "0")
    assert cpus_of(cgroup) == "1"
    assert await end(standby, signal.SIGINT) == 0


async def test_release_is_refused_beside_an_enforcer_and_works_beside_a_standby(
    node: Node, exclusive: tuple[Pod, str]
) -> None:
    _, cgroup = exclusive
    await node.stand_by()
    working = node.process
    arguments = ["--release", *(f"--{name}={value}" for name, value in node.options.items())]
    node.launch(arguments)
    await eventually(node.ended)
    assert "nothing was released: an enforcer runs on this node" in node.log
    assert "stop it first" in node.log
    assert cpus_of(cgroup) == "1"
    node.process = working
    await node.stop()
    await standing_in(node)
    node.launch(arguments)
    await eventually(node.ended)
    assert node.process is not None
    assert node.process.returncode == 0, node.log
    everything = (CPUSET / cgroup).parents[1]
    assert cpus_of(cgroup) == cpus_of(str(everything.relative_to(CPUSET))) == "0-1"


async def test_a_second_enforcer_waits_for_the_first(
    node: Node, exclusive: tuple[Pod, str]
) -> None:
    _, cgroup = exclusive
    first = node.process
    assert first is not None
    node.launch([f"--{name}={value}" for name, value in node.options.items()])
    await eventually(lambda: "another enforcer runs on this node" in node.log)
    assert not node.ended()
    os.kill(first.pid, signal.SIGTERM)
    await asyncio.to_thread(first.wait, PATIENCE_SECONDS)
    write_cpus(cgroup, "0-1")
    await eventually(lambda: cpus_of(cgroup) == "1", "the second to enforce")


def test_readiness_names_what_is_missing() -> None:
    command = [sys.executable, "-m", "numapin_enforcer.standby", "--state-dir=/nowhere"]
    environment = {"PATH": os.environ["PATH"]}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert "the node's name is missing: give --node-name, or NODE_NAME" in found.stderr
