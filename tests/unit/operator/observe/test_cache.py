"""Which nodes and policies each change wakes."""

from numapin_client.resources import Key
from numapin_operator.observe.cache import ClusterState
from support.values.operator import assignment_view, node_view, pod_view, policy_body, policy_view


class World:
    def __init__(self) -> None:
        self.woken: list[str] = []
        self.changed: list[str] = []
        self.state = ClusterState(self.woken.append, self.changed.append)

    def woken_since(self) -> tuple[list[str], list[str]]:
        """The nodes and policies since the last call."""
        calls = self.woken[:], self.changed[:]
        self.woken.clear()
        self.changed.clear()
        return calls


def test_a_pod_wakes_its_node_when_it_changes() -> None:
    world, key = World(), Key("a", "default")
    world.state.put_pod(key, pod_view("a", node="one"))
    assert world.woken_since() == (["one"], [])
    world.state.put_pod(key, pod_view("a", node="one"))
    assert world.woken_since() == ([], [])
    world.state.put_pod(key, pod_view("a", "4", node="one"))
    assert world.woken_since() == (["one"], [])
    world.state.drop_pod(key, "one")
    assert world.woken_since() == (["one"], [])
    assert list(world.state.pods_on("one")) == []


def test_pods_are_found_by_node() -> None:
    world = World()
    for name, node in (("a", "one"), ("b", "two"), ("c", "one")):
        world.state.put_pod(Key(name, "default"), pod_view(name, node=node))
    assert {pod.name for pod in world.state.pods_on("one")} == {"a", "c"}
    assert {pod.name for pod in world.state.pods_on("none")} == set()


def test_a_kubelets_heartbeat_wakes_no_node() -> None:
    world = World()
    world.state.put_node(node_view("one"))
    assert world.woken_since() == (["one"], [])
    world.state.put_node(node_view("one"))
    assert world.woken_since() == ([], [])
    world.state.put_node(node_view("one", {"pool": "b"}))
    assert world.woken_since() == (["one"], [])
    world.state.drop_node("one")
    world.state.drop_node("one")
    assert world.woken_since() == (["one"], [])


def test_a_policy_wakes_every_node_and_every_assignment_without_a_node() -> None:
    world = World()
    world.state.put_node(node_view("one"))
    world.state.assignments.put(assignment_view(node="orphan"))
    world.woken_since()
    world.state.put_policy(policy_body("policy"))
    assert world.woken_since() == (["one", "orphan"], ["policy"])
    world.state.put_policy(policy_body("policy"))
    assert world.woken_since() == ([], [])


def test_a_new_node_changes_every_policys_status() -> None:
    world = World()
    world.state.policies.put(policy_view("policy"))
    world.state.put_node(node_view("one"))
    assert world.woken_since() == (["one"], ["policy"])


def test_namespaces_matter_only_to_policies_that_select_by_them() -> None:
    world = World()
    world.state.put_pod(Key("a", "fast"), pod_view("a", node="one", namespace="fast"))
    world.state.put_pod(Key("b", "slow"), pod_view("b", node="two", namespace="slow"))
    world.state.policies.put(policy_view("plain"))
    world.woken_since()
    world.state.put_namespace("fast", {"team": "a"})
    assert world.woken_since() == ([], [])
    wanted = {"pods": {"namespaceSelector": {"matchLabels": {"team": "a"}}}}
    world.state.policies.put(policy_view("choosy", wanted))
    world.state.put_namespace("fast", {"team": "b"})
    assert world.woken_since() == (["one"], [])
    world.state.put_namespace("fast", {"team": "b"})
    assert world.woken_since() == ([], [])
    world.state.drop_namespace("fast")
    assert world.state.namespaces == {}
