"""Parts of numapin are killed and restarted; pinned containers stay pinned."""

from functools import partial
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_lab.running_lab import BUSY, RunningLab, eventually, pod, policy

OWN, SHARED = CpuSet.parse("1"), CpuSet.parse("0")


@pytest.fixture
def pinned(lab: RunningLab) -> RunningLab:
    """A lab with an exclusive pod and a shared pod, and everything in force."""
    lab.apply(policy(), pod("owner", cpu="1"), pod("neighbour"))
    lab.wait_running("owner", "neighbour")
    eventually(lambda: lab.allowed("owner"), OWN)
    eventually(lambda: lab.allowed("neighbour"), SHARED)
    lab.wait_in_force()
    return lab


def test_both_killed_and_restarted_in_the_other_order(pinned: RunningLab) -> None:
    before, spec = pinned.cpusets(), pinned.wait_in_force().spec
    pinned.kill("operator")
    pinned.kill("enforcer")
    pinned.restart("enforcer")
    assert pinned.cpusets() == before
    pinned.restart("operator")
    after = pinned.wait_in_force()
    assert after.spec == spec
    assert pinned.cpusets() == before
    assert after.status is not None
    assert after.status.drift_count == 0


def test_a_pod_that_ends_while_the_operator_is_down_is_released_later(pinned: RunningLab) -> None:
    pinned.kill("operator")
    pinned.delete("pod", "owner")
    assert pinned.allowed("neighbour") == SHARED
    pinned.restart("operator")
    eventually(lambda: pinned.allowed("neighbour"), OWN | SHARED)


def test_a_pod_that_starts_while_the_enforcer_is_down_is_pinned_later(lab: RunningLab) -> None:
    lab.apply(policy(), pod("neighbour"))
    lab.wait_running("neighbour")
    lab.wait_in_force()
    lab.kill("enforcer")
    lab.apply(pod("owner", cpu="1"))
    lab.wait_running("owner")
    lab.restart("enforcer")
    eventually(lambda: lab.allowed("owner"), OWN)
    eventually(lambda: lab.allowed("neighbour"), SHARED)


@pytest.mark.from_source(
    "on cgroup v1 a pod gets no real-time priority, so on busy CPUs the standby may fence a "
    "Guaranteed pod after its first instruction (docs/enforcing.md)"
)
@pytest.mark.parametrize("cpu", [None, "500m"], ids=["BestEffort", "Guaranteed"])
def test_a_new_pod_starts_off_the_exclusive_cpu_while_the_enforcer_is_down(
    pinned: RunningLab, cpu: str | None
) -> None:
    """Its QoS class fences it; a Guaranteed pod has none and is fenced by the standby.

    The shared CPU is busy.
    """
    pinned.apply(pod("busy", BUSY))
    pinned.wait_running("busy")
    eventually(pinned.reported_exclusive, [True])
    pinned.kill("enforcer")
    command = ("sh", "-c", "grep Cpus_allowed_list /proc/self/status; exec sleep 1000000")
    pinned.apply(pod("late", command, cpu=cpu))
    pinned.wait_running("late")
    eventually(lambda: pinned.kubectl("logs", "late").split(), ["Cpus_allowed_list:", str(SHARED)])
    assert pinned.allowed("late") == SHARED
    pinned.restart("enforcer")


def _owner(lab: RunningLab) -> dict[str, Any]:
    return lab.wait_in_force().spec.containers[0].to_wire()


def _refused(lab: RunningLab, message: str) -> bool:
    return message in lab.stalled("InvalidAssignment")


def test_an_assignment_that_is_wrong_is_refused_and_the_last_good_stays(pinned: RunningLab) -> None:
    """The operator is down, so that it does not overwrite the patched spec."""
    before = pinned.cpusets()
    pinned.kill("operator")
    owner = _owner(pinned)
    stranger = owner | {"podUID": "stranger", "pod": "stranger"}
    wrong = {
        "CPU 7": {"containers": [owner | {"cpus": "7"}]},
        "CPU 1": {"containers": [owner, stranger]},
    }
    for message, spec in wrong.items():
        pinned.patch_assignment(spec)
        pinned.wait(partial(_refused, pinned, message), f"{message} to be refused")
        assert pinned.cpusets() == before
    pinned.restart("operator")
    eventually(lambda: _owner(pinned), owner)
    assert pinned.cpusets() == before
