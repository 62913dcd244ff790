"""Running pods are resized in place on a real kubelet; a sampler reads every cgroup meanwhile.

The node has two CPUs, one of them reserved: one container can have a CPU of its own.
"""

import pytest

from numapin_api.cpuset import CpuSet
from numapin_campaigns.steps.resize import granted, resize
from numapin_lab.running_lab import BUSY, RunningLab, eventually, pod
from support.real.changing.cpu_limits import NO_QUOTA, cpu_files, quotas
from support.real.changing.resizes import OWN, SHARED, never_shared, pin_owner

EVERYTHING = CpuSet.parse("0-1")
HALF_MORE = 150_000

needs_both_cpus = pytest.mark.from_source(
    "with numapin's own requests the kubelet grants no second whole CPU"
)


def has_weight(lab: RunningLab, name: str, shares: int) -> bool:
    """Whether a container and its pod have this CPU weight, as the kubelet and the runtime say it.

    Versions of the two convert it differently for cgroup v2: there nothing is compared.
    """
    files = cpu_files(lab, name, v1="cpu.shares", v2="cpu.weight")
    return all(file.name == "cpu.weight" or int(file.read_text()) == shares for file in files)


def waits(lab: RunningLab) -> list[tuple[str, str | None, str]]:
    """The resizes that wait."""
    spec = lab.wait_in_force().spec
    return [(one.pod, one.container, one.reason) for one in spec.refused_resizes or ()]


def requested(lab: RunningLab, operation: str) -> float:
    """How many resizes of CPU requests the kubelet has counted."""
    page = lab.kubectl("get", "--raw", f"/api/v1/nodes/{lab.node}/proxy/metrics")
    labels = f'operation="{operation}",requirement="requests",resource="cpu"'
    series = f"kubelet_container_requested_resizes_total{{{labels}}} "
    found = [line for line in page.splitlines() if line.startswith(series)]
    return float(found[0].removeprefix(series)) if found else 0.0


def reasons(lab: RunningLab, name: str) -> set[str]:
    return {str(one["reason"]) for one in lab.events(name)}


@pytest.fixture
def pinned(lab: RunningLab) -> RunningLab:
    """`owner` with CPU 1 to itself, and `neighbour` on the other one."""
    pin_owner(lab)
    return lab


def test_a_container_leaves_exclusivity_and_gains_it_without_a_restart(pinned: RunningLab) -> None:
    lab = pinned
    increases, decreases = requested(lab, "increase"), requested(lab, "decrease")
    eventually(lambda: quotas(lab, "owner"), (NO_QUOTA, NO_QUOTA))
    with never_shared(lab, "owner", "neighbour"):
        resize(lab, "owner", "1500m")
        eventually(lambda: granted(lab, "owner"), "1500m")
        eventually(lambda: lab.allowed("owner"), EVERYTHING)
        eventually(lambda: lab.allowed("neighbour"), EVERYTHING)
        eventually(lambda: quotas(lab, "owner"), (HALF_MORE, HALF_MORE))
        eventually(lambda: has_weight(lab, "owner", 1536), True)
        eventually(lab.reported_exclusive, [])
        resize(lab, "owner", "1")
        eventually(lambda: lab.allowed("owner"), OWN)
        eventually(lambda: lab.allowed("neighbour"), SHARED)
        eventually(lambda: quotas(lab, "owner"), (NO_QUOTA, NO_QUOTA))
        eventually(lambda: has_weight(lab, "owner", 1024), True)
        eventually(lab.reported_exclusive, [True])
    assert waits(lab) == []
    eventually(lambda: "CPUsResized" in reasons(lab, "owner"), True)
    assert requested(lab, "increase") == increases + 1, "the kubelet counts it, so we do not"
    assert requested(lab, "decrease") == decreases + 1


@needs_both_cpus
def test_a_grow_that_does_not_fit_keeps_its_cpu_and_says_why(pinned: RunningLab) -> None:
    lab = pinned
    with never_shared(lab, "owner", "neighbour"):
        resize(lab, "owner", "2")
        eventually(lambda: granted(lab, "owner"), "2")
        eventually(lambda: waits(lab), [("owner", "main", "NotEnoughCPUs")])
        eventually(lambda: "NotEnoughCPUs" in reasons(lab, "owner"), True)
        eventually(lambda: quotas(lab, "owner"), (NO_QUOTA, NO_QUOTA))
        eventually(lambda: has_weight(lab, "owner", 2048), True)
        assert lab.allowed("owner") == OWN
        resize(lab, "owner", "1")
        eventually(lambda: waits(lab), [])
        assert lab.allowed("owner") == OWN
        eventually(lambda: quotas(lab, "owner"), (NO_QUOTA, NO_QUOTA))


@needs_both_cpus
def test_a_container_that_gains_exclusivity_waits_for_its_neighbour(pinned: RunningLab) -> None:
    """A shared pod is refused like a new one, and gets its CPU when the neighbour has ended."""
    lab = pinned
    lab.apply(pod("part", BUSY, cpu="500m"))
    lab.wait_running("part")
    with never_shared(lab, "part", "neighbour"):
        resize(lab, "part", "1")
        eventually(lambda: granted(lab, "part"), "1")
        eventually(lambda: "NotEnoughCPUs" in reasons(lab, "part"), True)
        assert lab.allowed("part") == SHARED
        lab.delete("pod", "owner")
        eventually(lambda: lab.allowed("part"), OWN)
        eventually(lambda: quotas(lab, "part"), (NO_QUOTA, NO_QUOTA))
    eventually(lab.reported_exclusive, [True])
    assert lab.wait_in_force().spec.refused == ()


@needs_both_cpus
def test_what_the_kubelet_has_not_granted_changes_nothing(pinned: RunningLab) -> None:
    """It has no room for 2 CPUs beside `part`, and defers the resize until `part` has ended."""
    lab = pinned
    lab.apply(pod("part", BUSY, cpu="500m"))
    lab.wait_running("part")
    before = lab.wait_in_force()
    resize(lab, "owner", "2")
    pending = "{.status.conditions[?(@.type=='PodResizePending')].reason}"
    eventually(lambda: lab.kubectl("get", "pod", "owner", f"-o=jsonpath={pending}"), "Deferred")
    assert granted(lab, "owner") == "1"
    after = lab.wait_in_force()
    assert after.spec == before.spec
    lab.delete("pod", "part")
    eventually(lambda: waits(lab), [("owner", "main", "NotEnoughCPUs")])
