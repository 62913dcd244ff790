"""The plan of a chaos run follows from its seed and holds every kind of pod, end and fault."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_campaigns.chaos.plan import EXCLUSIVE_KINDS, FAULTS, End, PodKind, make_plan
from numapin_campaigns.chaos.pods import manifest, resize
from numapin_campaigns.faults.crowd import CROWD
from numapin_campaigns.faults.io_uring import IO_URING
from numapin_campaigns.faults.kills import API_SERVER_OUTAGE, KILL_ENFORCER, KILL_ENFORCER_AT_REPORT

SEEDS = st.integers(0, 2**32)


@given(seed=SEEDS, pods=st.integers(10, 400))
def test_equal_seeds_give_equal_runs(seed: int, pods: int) -> None:
    plan = make_plan(seed, pods)
    assert plan == make_plan(seed, pods)
    assert plan.pods == pods
    names = [one.name for one in (*plan.exclusive_pods, *plan.shared_pods)]
    assert len(set(names)) == pods
    assert all(0 < fault.after <= pods for fault in plan.faults)


@given(seed=SEEDS)
def test_a_run_of_two_hundred_has_every_kind_of_pod_end_and_fault(seed: int) -> None:
    plan = make_plan(seed, 200)
    kinds = Counter(one.kind for one in (*plan.exclusive_pods, *plan.shared_pods))
    assert kinds.keys() == set(PodKind)
    assert {one.end for one in plan.exclusive_pods} == set(End)
    assert {one.fault for one in plan.faults} == set(FAULTS)
    assert {one.kind for one in plan.exclusive_pods} == set(EXCLUSIVE_KINDS)
    assert any(one.early for one in plan.exclusive_pods)


@given(seed=SEEDS)
def test_some_pods_are_resized_while_they_run(seed: int) -> None:
    plan = make_plan(seed, 200)
    resized = [one for one in (*plan.exclusive_pods, *plan.shared_pods) if one.resizes]
    assert len([one for one in resized if one.exclusive]) == 12
    for pod in resized:
        (container,) = manifest(pod)["spec"]["containers"]
        amounts = [container["resources"]["limits"]["cpu"], *(one.cpu for one in pod.resizes)]
        assert amounts in (["1", "1500m", "1"], ["20m", "1", "20m"])
        times = [one.after_seconds for one in pod.resizes]
        assert times == sorted(times)
        assert times[-1] < pod.life_seconds
        (asked,) = resize(pod, "1500m")["spec"]["containers"]
        assert asked["resources"]["limits"] == {"cpu": "1500m", "memory": "16Mi"}


@given(seed=SEEDS)
def test_the_last_part_and_a_spared_enforcer_see_no_kill_of_it(seed: int) -> None:
    kills = {KILL_ENFORCER, KILL_ENFORCER_AT_REPORT, API_SERVER_OUTAGE}
    kills.add(IO_URING)  # it ends with a kill of the enforcer
    assert all(one.after <= 120 for one in make_plan(seed, 200).faults if one.fault in kills)
    spared = make_plan(seed, 200, spare_enforcer=True)
    assert not [one for one in spared.faults if one.fault in kills]


@given(seed=SEEDS)
def test_every_pod_is_of_the_class_that_its_kind_says(seed: int) -> None:
    plan = make_plan(seed, 60)
    for planned in (*plan.exclusive_pods, *plan.shared_pods):
        spec = manifest(planned)["spec"]
        asked = [one.get("resources", {}) for one in spec["containers"]]
        guaranteed = all(one.get("limits", {}).keys() == {"cpu", "memory"} for one in asked)
        assert guaranteed == (planned.kind in {*EXCLUSIVE_KINDS, PodKind.FRACTION})
        assert planned.exclusive == any(one.get("limits", {}).get("cpu") == "1" for one in asked)
        assert (spec["terminationGracePeriodSeconds"] == 30) == (planned.end is End.FORCED)


@pytest.mark.parametrize(("pods", "crowd"), [(30, 6), (200, 40), (2000, 40)])
def test_the_crowd_grows_with_the_run_up_to_what_a_node_may_have(pods: int, crowd: int) -> None:
    plan = make_plan(1, pods)
    assert plan.crowd == crowd
    assert [one.fault for one in plan.faults].count(CROWD) == max(1, pods // 200)
