"""CPUs leave a container when its workload has been shown that for the whole notice."""

import pytest

from numapin_api.cpuset import CpuSet
from numapin_operator.nodes.decide import Write
from numapin_operator.nodes.moves.notices import notices_of_moves
from numapin_operator.nodes.moves.steps import MOST_DELAY, SHOWN_SECONDS
from support.values.moves import MovingNode, container, fragmented_node
from support.values.placement import granted_pod, pod


def noticed(node: MovingNode) -> MovingNode:
    """The node when the time has been written."""
    node.decide()
    node.report()
    node.decide()
    node.report()
    return node


def cpus(node: MovingNode, name: str = "small") -> str:
    node.decide()
    return str(node.entry(name).cpus)


def test_cpus_stay_until_the_workload_has_been_shown_it_for_the_whole_notice() -> None:
    node = fragmented_node(dynamic={"notice": "1s"})
    node.told = {}
    noticed(node)
    assert node.moving("small").at == "2030-01-01T00:00:02Z"
    node.wait(10)
    assert cpus(node) == "1,6"
    node.told = {"uid-small": node.now - 0.5}
    assert cpus(node) == "1,6"
    assert node.decision.again_at == node.now + 1.5
    node.wait(1.5)
    assert cpus(node) == "6"


def test_without_a_notice_cpus_stay_until_the_workload_can_have_been_shown_it() -> None:
    node = fragmented_node(dynamic={"notice": "0s"})
    node.told = {}
    noticed(node)
    node.wait(10)
    node.told = {"uid-small": node.now}
    assert cpus(node) == "1,6"
    node.wait(SHOWN_SECONDS)
    assert cpus(node) == "6"


def test_cpus_do_not_leave_before_the_time_that_was_written() -> None:
    node = fragmented_node(dynamic={"notice": "2s"})
    node.told = {}
    noticed(node)
    node.told = {"uid-small": node.now - 30}
    assert cpus(node) == "1,6"
    node.wait(3)
    assert cpus(node) == "6"


def test_a_workload_that_cannot_be_told_does_not_hold_a_move_up_for_ever() -> None:
    node = fragmented_node(dynamic={"notice": "2s"})
    node.told = {}
    noticed(node)
    node.wait(2 + MOST_DELAY)
    assert cpus(node) == "1,6"
    assert node.decision.again_at == node.now + 1
    node.wait(1)
    assert cpus(node) == "6"


def shrinking(*sizes: str, told: bool = True, **policy: object) -> MovingNode:
    """A node whose container `a` has CPUs 1-3, and is resized."""
    a = granted_pod("a", *((size, "64Mi") for size in sizes))
    node = MovingNode([container("a", "1-3")], [a], {"mode": "Static", **policy})
    node.spec["mode"] = "Static"
    node.told = {} if told else None
    return node


def test_a_container_that_shrinks_keeps_its_cpus_until_it_has_been_told() -> None:
    node = shrinking("1")
    node.decide()
    entry = node.entry("a")
    assert (str(entry.cpus), str(node.moving("a").leaving)) == ("1-3", "2-3")
    assert (entry.moved_at, entry.grants) == (None, (CpuSet.parse("1"),))
    node.report()
    assert cpus(node, "a") == "1-3"
    assert node.moving("a").at == "2030-01-01T00:00:02Z"
    node.report()
    node.told = {"uid-a": node.now}
    node.wait(2)
    assert cpus(node, "a") == "1"
    node.report()
    node.decide()
    assert node.entry("a").moving is None
    assert str(node.entry("a").cpus) == "1"
    node.report()
    node.decide()
    assert node.decision.write is Write.NOTHING


def test_a_pod_waits_for_what_a_container_gives_back() -> None:
    node = shrinking("1")
    node.policy["topology"] = {"policy": "None"}
    node.pods.append(pod("late", "5"))
    node.decide()
    assert [one.pod.name for one in node.decision.waiting] == ["late"]
    for _ in range(4):
        node.report()
        node.told = {"uid-a": node.now}
        node.wait(2)
        node.decide()
    assert len(node.entry("late").cpus) == 5
    assert node.entry("late").cpus.isdisjoint(CpuSet.parse("1"))


@pytest.mark.parametrize(
    ("node", "left"),
    [
        pytest.param(shrinking("1", told=False), "1", id="nobody-is-told"),
        pytest.param(shrinking("1500m"), "", id="leaves-exclusivity"),
    ],
)
def test_who_shrinks_at_once(node: MovingNode, left: str) -> None:
    spec = node.decide()
    assert [str(one.cpus) for one in spec.containers] == ([left] if left else [])
    assert not any(one.moving for one in spec.containers)


def test_a_container_that_only_shrinks_has_no_event_of_a_move() -> None:
    node = shrinking("1")
    before = node.view().spec
    after = node.decide()
    assert list(notices_of_moves(before, after, node.topology)) == []
    assert list(notices_of_moves(after, before, node.topology)) == []
