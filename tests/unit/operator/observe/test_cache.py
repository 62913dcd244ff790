"""Which nodes and policies each change wakes."""

from collections.abc import Set as AbstractSet
from dataclasses import replace

from numapin_client.resources import Key
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.stores.versioned_cache import Listed
from support.values.operator import (
    assignment_view,
    enforcer_status,
    node_view,
    pod_view,
    policy_body,
    policy_view,
)


class World:
    def __init__(self) -> None:
        self.woken: list[str] = []
        self.urgent: list[str] = []
        self.changed: list[str] = []
        self.ranked: dict[str, tuple[str, ...]] = {}
        self.state = ClusterState(self.wake, self.changed.append, self.rank)

    def rank(self, nodes: AbstractSet[str]) -> None:
        self.ranked.update({node: self.state.ranking_of(node) for node in nodes})

    def wake(self, name: str, *, urgent: bool = False) -> None:
        self.woken.append(name)
        if urgent:
            self.urgent.append(name)

    def woken_since(self) -> tuple[list[str], list[str]]:
        """The nodes and policies since the last call."""
        calls = self.woken[:], self.changed[:]
        self.woken.clear()
        self.urgent.clear()
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


def test_an_enforcers_heartbeat_wakes_no_node() -> None:
    """An enforcer of an earlier release writes the time of its last pass every few minutes."""
    world, status = World(), enforcer_status(1)
    first = assignment_view({}, status)
    world.state.put_assignment(first)
    assert world.woken_since() == ([first.name], [])
    later = replace(first, version=first.version + 1, metadata={"resourceVersion": "9"})
    world.state.put_assignment(later)
    assert world.woken_since() == ([], [])
    assert world.state.assignments.get(first.name) is later
    observed = assignment_view({}, enforcer_status(2))
    world.state.put_assignment(replace(observed, version=later.version + 1))
    assert world.woken_since() == ([first.name], [])


def test_a_policy_wakes_the_nodes_that_it_governs_or_governed() -> None:
    world = World()
    for name in ("one", "two", "three"):
        world.state.put_node(node_view(name, {"pool": name}))
    world.state.assignments.put(assignment_view(node="orphan"))
    world.woken_since()
    world.state.put_policy(policy_body("policy", {"nodeSelector": {"pool": "one"}}))
    assert world.woken_since() == (["one"], ["policy"])
    edited = {"nodeSelector": {"pool": "two"}}
    world.state.put_policy(policy_body("policy", edited, version=11, generation=2))
    assert world.woken_since() == (["one", "two"], ["policy"])
    assert world.ranked == {"one": (), "two": ("policy",), "three": ()}
    world.state.put_policy(policy_body("policy", version=11))
    assert world.woken_since() == ([], []), "this version is not newer"
    world.state.drop_policy(policy_body("policy", version=12))
    assert world.woken_since() == (["two"], ["policy"])


def test_an_overruled_policy_wakes_no_node() -> None:
    world = World()
    world.state.put_node(node_view("one"))
    world.state.put_policy(policy_body("high", {"priority": 1}))
    world.woken_since()
    world.state.put_policy(policy_body("low"))
    assert world.woken_since() == ([], ["low"])
    assert world.ranked == {"one": ("high", "low")}
    world.state.put_policy(policy_body("low", {"priority": 2}, version=11, generation=2))
    assert world.woken_since() == (["one"], ["low"])
    assert [one.name for one in world.state.policies_of("one")] == ["low", "high"]


def test_a_policys_status_labels_and_annotations_wake_no_node() -> None:
    world = World()
    world.state.put_node(node_view("one"))
    world.state.put_policy(policy_body("policy"))
    world.woken_since()
    for version in (11, 12):
        body = policy_body("policy", version=version, status={"nodesSelected": version})
        body["metadata"]["labels"] = {"version": str(version)}
        world.state.put_policy(body)
    assert world.woken_since() == ([], ["policy", "policy"]), "the status may need to be written"
    listed = Listed((policy_view("policy", version=13, status={"nodesSelected": 12}),), 14)
    world.state.replace_policies(listed)
    assert world.woken_since() == ([], [])


def test_a_list_wakes_the_nodes_of_what_was_deleted_and_edited_meanwhile() -> None:
    world = World()
    for name in ("one", "two", "three"):
        world.state.put_node(node_view(name, {"pool": name}))
        world.state.put_policy(policy_body(name, {"nodeSelector": {"pool": name}}))
    world.woken_since()
    same = policy_view("one", {"nodeSelector": {"pool": "one"}}, version=11)
    edited = policy_view("two", {"nodeSelector": {"pool": "two"}, "priority": 1}, version=11)
    world.state.replace_policies(Listed((same, edited), 14))
    assert world.woken_since()[0] == ["three", "two"]
    assert world.ranked["three"] == ()


def test_new_and_ending_pods_and_free_cpus_are_urgent() -> None:
    world, key = World(), Key("a", "default")
    world.state.put_node(node_view("one"))
    world.state.put_assignment(reported(1, "x", "y"))
    assert world.urgent == []
    pod = pod_view("a", node="one")
    for changed, urgent in (
        (pod, True),
        (replace(pod, labels={"a": "b"}), False),
        (replace(pod, deleting=True), True),
        (replace(pod, deleting=True, terminal=True), False),
    ):
        world.woken_since()
        world.state.put_pod(key, changed)
        assert (world.woken, bool(world.urgent)) == (["one"], urgent)
    world.woken_since()
    world.state.drop_pod(key, "one")
    assert world.urgent == ["one"]
    world.woken_since()
    world.state.put_assignment(reported(2, "x", "y", "z"))
    assert (world.woken, world.urgent) == (["one"], [])
    world.state.put_assignment(reported(3, "y", "z"))
    assert world.urgent == ["one"]


def reported(version: int, *running: str) -> AssignmentView:
    metadata = {"name": "one", "uid": "uid-one", "resourceVersion": str(version)}
    body = {"metadata": metadata, "status": enforcer_status(1, running=running)}
    return AssignmentView.decode(body)


def test_a_new_node_changes_the_statuses_of_the_policies_that_select_it() -> None:
    world = World()
    world.state.put_policy_view(policy_view("policy"))
    world.state.put_policy_view(policy_view("other", {"nodeSelector": {"pool": "b"}}))
    world.woken_since()
    world.state.put_node(node_view("one"))
    assert world.ranked == {"one": ("policy",)}
    world.state.put_node(node_view("one", {"pool": "b"}))
    assert world.ranked == {"one": ("other", "policy")}
    world.state.drop_node("one")
    assert world.ranked == {"one": ()}


def test_namespaces_matter_only_to_policies_that_select_by_them() -> None:
    world = World()
    world.state.put_pod(Key("a", "fast"), pod_view("a", node="one", namespace="fast"))
    world.state.put_pod(Key("b", "slow"), pod_view("b", node="two", namespace="slow"))
    world.state.put_policy_view(policy_view("plain"))
    world.woken_since()
    world.state.put_namespace("fast", {"team": "a"})
    assert world.woken_since() == ([], [])
    wanted = {"pods": {"namespaceSelector": {"matchLabels": {"team": "a"}}}}
    world.state.put_policy_view(policy_view("choosy", wanted))
    world.woken_since()
    world.state.put_namespace("fast", {"team": "b"})
    assert world.woken_since() == (["one"], [])
    world.state.put_namespace("slow", {})
    assert world.woken_since() == (["two"], []), "its pods waited for it"
    world.state.put_namespace("fast", {"team": "b", "owner": "me"})
    assert world.woken_since() == ([], []), "no selector uses this label"
    world.state.put_namespace("fast", {"team": "b"})
    assert world.woken_since() == ([], [])
    world.state.drop_pod(Key("a", "fast"), "one")
    world.woken_since()
    world.state.put_namespace("fast", {"team": "c"})
    assert world.woken_since() == ([], []), "no pod of it is left"
    world.state.drop_namespace("fast")
    assert world.state.namespaces == {"slow": {}}
