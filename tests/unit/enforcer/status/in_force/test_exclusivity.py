"""Which exclusive containers are not exclusive, and what is said of them."""

import pytest

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.tree import OutsideCgroup, Tree
from numapin_enforcer.plan.desired import desire
from numapin_enforcer.status.in_force.exclusivity import NO_EVIDENCE, Evidence, stray
from numapin_enforcer.status.in_force.summary import Summary, summarize
from support.values.specs_and_trees import (
    EXCLUSIVE,
    GUEST,
    NAMES,
    NAMING,
    POD,
    SANDBOX,
    assigned,
    machine,
    spec,
    tree,
)

OWN, OTHER = f"{POD}/{EXCLUSIVE}", f"{POD}/{GUEST}"
ONE = spec(assigned("exclusive", "6-7"))
BOTH = spec(assigned("exclusive", "6-7"), assigned("guest", "7"))
SETTLED = {"kubepods/burstable": "0-3", "kubepods/besteffort": "0-3", POD: "0-3,6-7"}


def settled(**found: str) -> Tree:
    """The tree with every set as `ONE` wants it, but for what is given."""
    made = tree(**{"exclusive": "6-7", "guest": "0-3", "sandbox": "0-3"} | found)
    changed = {}
    for path, cpus in SETTLED.items():
        one = made.cgroups[path]
        mask = CpuSet.parse(cpus)
        changed[path] = type(one)(path, mask, one.mems, mask, one.effective_mems)
    return made.with_changes(changed)


def summary_of(
    one: object = ONE,
    observed: Tree | None = None,
    evidence: Evidence = NO_EVIDENCE,
    names: dict[str, str] = NAMES,
    offline: str = "",
) -> Summary:
    assert isinstance(one, type(ONE))
    found = observed or settled()
    return summarize(
        one, found, desire(one, found, NAMING, names, machine(offline)), NAMING, evidence
    )


def said(summary: Summary) -> list[tuple[str, str]]:
    return [(str(one.reason), str(one)) for one in summary.lacks]


def reported(summary: Summary) -> dict[str, bool]:
    return {one.container: one.exclusive for one in summary.containers}


def test_nothing_is_lacking_if_an_exclusive_container_is_exclusive() -> None:
    assert (said(summary_of()), reported(summary_of())) == ([], {"exclusive": True})


@pytest.mark.parametrize(("late", "waits"), [("3,6-7", "3"), ("6", ""), ("6-7", "")])
def test_what_the_runtime_may_still_give_it_delays_the_report(late: str, waits: str) -> None:
    summary = summary_of(evidence=Evidence(stale_cpus={OWN: CpuSet.parse(late)}))
    text = f"container d/p/exclusive waits: the runtime may still give it CPU {waits}"
    assert said(summary) == ([(Reason.APPLYING, text)] if waits else [])
    assert reported(summary) == {"exclusive": not waits}


def test_two_running_containers_of_a_pod_with_a_cpu_in_common_are_not_exclusive() -> None:
    summary = summary_of(BOTH, settled(guest="7"))
    assert reported(summary) == {"exclusive": False, "guest": False}
    text = "container d/p/exclusive shares CPU 7 with container d/p/guest"
    assert (Reason.CPUS_SHARED, text) in said(summary)


@pytest.mark.parametrize(
    "evidence", [Evidence(starting=frozenset({OTHER})), Evidence(deserted=frozenset({OTHER}))]
)
def test_an_init_container_that_ended_takes_no_cpu_from_the_next_one(evidence: Evidence) -> None:
    assert reported(summary_of(BOTH, settled(guest="7"), evidence))["exclusive"]


def test_two_unnamed_containers_on_the_same_set_are_not_both_the_exclusive_one() -> None:
    """The runtime is silent, and both stood on the pool that became exclusive CPUs."""
    summary = summary_of(ONE, settled(guest="6-7"), names={SANDBOX: ""})
    assert reported(summary) == {"exclusive": False}
    assert [reason for reason, _ in said(summary)] == ["CPUsShared"]


def test_a_container_that_just_started_is_not_listed_before_it_has_a_process() -> None:
    summary = summary_of(evidence=Evidence(starting=frozenset({OWN})))
    assert (summary.containers, said(summary)) == ((), [])


def test_a_container_without_processes_is_not_exclusive() -> None:
    summary = summary_of(evidence=Evidence(deserted=frozenset({OWN})))
    assert reported(summary) == {"exclusive": False}
    ((reason, text),) = said(summary)
    assert reason == "ProcessesElsewhere"
    assert text.startswith("container d/p/exclusive has no process in its cgroup")


def test_a_cgroup_left_by_the_container_before_does_not_count() -> None:
    both = {EXCLUSIVE: "exclusive", GUEST: "exclusive"}
    for left in (OWN, OTHER):
        evidence = Evidence(deserted=frozenset({left}))
        summary = summary_of(ONE, settled(guest="6-7"), evidence, both)
        assert (reported(summary), said(summary)) == ({"exclusive": True}, [])


def test_a_container_whose_cpus_are_offline_is_not_exclusive() -> None:
    summary = summary_of(ONE, settled(exclusive="0-3"), offline="6-7")
    assert reported(summary) == {"exclusive": False}
    ((reason, text),) = said(summary)
    assert (reason, "CPU 6-7" in text) == ("CPUsOffline", True)


def test_cpus_that_the_runtime_may_still_write_elsewhere_are_named() -> None:
    summary = summary_of(evidence=Evidence(stale_cpus={OTHER: CpuSet([7])}))
    ((reason, text),) = said(summary)
    assert (reason, "CPU 7" in text) == ("Applying", True)
    assert reported(summary) == {"exclusive": False}


def test_a_container_outside_of_the_kubelets_cgroups_counts_as_another() -> None:
    outside = (OutsideCgroup("k8s.io/f", CpuSet([0, 6])), OutsideCgroup("k8s.io/e", CpuSet([0])))
    summary = summary_of(evidence=Evidence(outside=outside))
    ((reason, text),) = said(summary)
    assert (reason, reported(summary)) == ("CPUsShared", {"exclusive": False})
    assert "shares CPU 6 with the container in cgroup k8s.io/f" in text
    assert summary.lacks[0].needs_help
    assert not summary_of(evidence=Evidence(outside=outside[1:])).lacks


def test_an_exclusive_container_outside_of_the_kubelets_cgroups_is_named() -> None:
    """The kubelet's cgroupRoot was changed, or a virtual machine runs the container (Kata)."""
    strays = frozenset({("1", "guest"), ("1", "exclusive"), ("2", "exclusive")})
    summary = summary_of(BOTH, evidence=Evidence(strays=strays), names={EXCLUSIVE: "exclusive"})
    assert reported(summary) == {"exclusive": True}
    ((reason, text),) = said(summary)
    assert reason == "ProcessesElsewhere"
    assert text.startswith("container d/p/guest runs outside of the kubelet's cgroups")
    assert "set --cgroup-root" in text


LITERAL = "system.slice/containerd.service/kubepods-burstable-pod1.slice:cri-containerd:"
SLICES = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-"


@pytest.mark.parametrize(
    ("path", "runtime", "kubelet"),
    [
        pytest.param(LITERAL + "f" * 64, "cgroupfs", "systemd", id="containerd-with-its-default"),
        pytest.param(f"{SLICES}{'f' * 64}.scope", "systemd", "cgroupfs", id="kubelet-cgroupfs"),
    ],
)
def test_two_cgroup_drivers_are_named(path: str, runtime: str, kubelet: str) -> None:
    """Of an exclusive container, and of one of the shared pool that may use its CPUs."""
    said_of_both = f"the runtime uses the cgroup driver {runtime} and the kubelet {kubelet}"
    outside = (OutsideCgroup("k8s.io/f", CpuSet([0])), OutsideCgroup(path, CpuSet([0, 6])))
    strays = frozenset({("1", "guest")})
    summary = summary_of(
        BOTH, evidence=Evidence(strays=strays, outside=outside), names={EXCLUSIVE: "exclusive"}
    )
    assert [reason for reason, _ in said(summary)] == ["CPUsShared", "ProcessesElsewhere"]
    for _, text in said(summary):
        assert said_of_both in text
        assert "SystemdCgroup = true" in text
        assert text.count(path) == 1


@pytest.mark.parametrize(
    ("path", "kubepods", "past"),
    [
        pytest.param(LITERAL + "f" * 64, "kubepods.slice", False, id="now"),
        pytest.param(LITERAL + "f" * 64, "kubepods", True, id="kubelet-changed-to-the-runtime's"),
        pytest.param(f"{SLICES}{'f' * 64}.scope", "kubepods", True, id="both-changed"),
        pytest.param(f"kubepods/pod1/{'f' * 64}", "kubepods.slice", True, id="both-changed-back"),
    ],
)
def test_a_container_from_before_a_change_of_the_driver(
    path: str, kubepods: str, past: bool
) -> None:
    (one,) = (each for each in BOTH.containers if each.container == "guest")
    found = Evidence(outside=(OutsideCgroup(path, CpuSet([0])),))
    text = stray(one, found, kubepods).why
    assert ("or did so when the container was created" in text) == past
    assert ("if both use one driver by now, that is enough" in text) == past
