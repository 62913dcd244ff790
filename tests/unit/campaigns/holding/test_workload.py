"""The pods of a run, the kubelets that are played, and the options that decide both."""

import pytest

from numapin_campaigns.__main__ import build_parser
from numapin_campaigns.holding.command import planned, report_of
from numapin_campaigns.holding.kubelets import Kubelets
from numapin_campaigns.holding.outcome import Fate, Outcome, Way
from numapin_campaigns.holding.workload import CPUS, Planned, plan
from numapin_client.resources import Json
from numapin_lab.errors import LabError


def body(cpus: int, uid: str) -> Json:
    """A pod as the API server has it."""
    made = Planned("a", cpus, 0.0, 1.0).body(1)
    return made | {"metadata": made["metadata"] | {"uid": uid}}


def test_a_seed_decides_the_pods() -> None:
    assert plan(1, 50, 5, 0.8, 15.0) == plan(1, 50, 5, 0.8, 15.0)
    assert plan(1, 50, 5, 0.8, 15.0) != plan(2, 50, 5, 0.8, 15.0)


def test_pods_ask_for_the_share_of_the_cpus_that_is_wanted() -> None:
    made = plan(3, 4000, 50, 0.8, 15.0).pods
    asked = sum(one.cpus * one.runs_seconds for one in made)
    offered = 50 * (CPUS - 1) * made[-1].at_seconds
    assert asked / offered == pytest.approx(0.8, rel=0.05)


def test_a_pod_that_has_failed_comes_again_under_another_name() -> None:
    pod = Planned("a", 2, 0.0, 1.0)
    assert [pod.body(one)["metadata"]["name"] for one in (1, 2)] == ["a", "a-2"]
    assert pod.body(1)["metadata"]["labels"] == pod.body(2)["metadata"]["labels"]


def test_a_kubelet_refuses_what_fits_no_one_numa_node() -> None:
    kubelets = Kubelets()
    assert kubelets.admits("n", body(5, "a"))
    assert kubelets.admits("n", body(5, "b"))
    assert not kubelets.admits("n", body(5, "c")), "5 CPUs are free, on two NUMA nodes"
    assert kubelets.admits("m", body(5, "c")), "another node is another one"
    kubelets.release("n", "a")
    assert kubelets.admits("n", body(5, "d"))


@pytest.mark.parametrize("option", ["pods", "nodes", "load", "runs"])
def test_an_option_that_cannot_be_used_is_named(option: str) -> None:
    options = build_parser().parse_args(["holding", f"--{option}", "0"])
    with pytest.raises(LabError, match=f"--{option} is 0"):
        planned(options)


def test_the_report_has_each_way_and_what_was_found() -> None:
    made = plan(1, 1, 1, 0.5, 1.0)
    good = Outcome(Way.HOLD, [Fate("a", 0.2, 0.1, 0, "n", "n", True)], 1.0, 0.1)
    bad = Outcome(Way.KUBELET, [Fate("a")], 1.0, 0.1)
    assert report_of(made, [good]).good
    report = report_of(made, [good, bad])
    assert not report.good
    assert report.to_json()["kubelet"]["never"] == 1
    assert "PROBLEM: kubelet: 1 pods did not end: a" in report.summary()
