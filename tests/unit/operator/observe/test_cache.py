"""An event concerns the nodes it concerns, and no others."""

from numapin_client.resources import Key
from numapin_operator.observe.cache import ClusterState
from support.values.operator import assignment_view, node_view, pod_view, policy_body, policy_view


class World:
    def __init__(self) -> None:
        self.woken: list[str] = []
        self.changed: list[str] = []
        self.state = ClusterState(self.woken.append, self.changed.append)

    def news(self) -> tuple[list[str], list[str]]:
        """What was told since the last call."""
        told = self.woken[:], self.changed[:]
        self.woken.clear()
        self.changed.clear()
        return told


def test_a_pod_wakes_its_node_when_it_changes() -> None:
    world, key = World(), Key("a", "default")
    world.state.put_pod(key, pod_view("a", node="one"))
    assert world.news() == (["one"], [])
    world.state.put_pod(key, pod_view("a", node="one"))
    assert world.news() == ([], [])
    world.state.put_pod(key, pod_view("a", "4", node="one"))
    assert world.news() == (["one"], [])
    world.state.drop_pod(key, "one")
    assert world.news() == (["one"], [])
    assert list(world.state.pods_on("one")) == []


def test_pods_are_kept_by_node() -> None:
    world = World()
    for name, node in (("a", "one"), ("b", "two"), ("c", "one")):
        world.state.put_pod(Key(name, "default"), pod_view(name, node=node))
    assert {pod.name for pod in world.state.pods_on("one")} == {"a", "c"}
    assert {pod.name for pod in world.state.pods_on("none")} == set()


def test_a_kubelets_sign_of_life_wakes_nobody() -> None:
    world = World()
    world.state.put_node(node_view("one"))
    assert world.news() == (["one"], [])
    world.state.put_node(node_view("one"))
    assert world.news() == ([], [])
    world.state.put_node(node_view("one", {"pool": "b"}))
    assert world.news() == (["one"], [])
    world.state.drop_node("one")
    world.state.drop_node("one")
    assert world.news() == (["one"], [])


def test_a_policy_wakes_every_node_and_every_orphan() -> None:
    world = World()
    world.state.put_node(node_view("one"))
    world.state.assignments.put(assignment_view(node="orphan"))
    world.news()
    world.state.put_policy(policy_body("policy"))
    assert world.news() == (["one", "orphan"], ["policy"])
    world.state.put_policy(policy_body("policy"))
    assert world.news() == ([], [])


def test_a_node_that_comes_changes_what_policies_say() -> None:
    world = World()
    world.state.policies.put(policy_view("policy"))
    world.state.put_node(node_view("one"))
    assert world.news() == (["one"], ["policy"])


def test_namespaces_matter_only_to_policies_that_look_at_them() -> None:
    world = World()
    world.state.put_pod(Key("a", "fast"), pod_view("a", node="one", namespace="fast"))
    world.state.put_pod(Key("b", "slow"), pod_view("b", node="two", namespace="slow"))
    world.state.policies.put(policy_view("plain"))
    world.news()
    world.state.put_namespace("fast", {"team": "a"})
    assert world.news() == ([], [])
    wanted = {"pods": {"namespaceSelector": {"matchLabels": {"team": "a"}}}}
    world.state.policies.put(policy_view("choosy", wanted))
    world.state.put_namespace("fast", {"team": "b"})
    assert world.news() == (["one"], [])
    world.state.put_namespace("fast", {"team": "b"})
    assert world.news() == ([], [])
    world.state.drop_namespace("fast")
    assert world.state.namespaces == {}
