"""Random histories of a node in mode Dynamic: pods come and go, reports are late, time passes."""

import random
from dataclasses import replace

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_operator.placement import PodView
from support.values.moves import MovingNode
from support.values.placement import granted_pod, machine, pod

HISTORIES = 120
STEPS = 30


def check(node: MovingNode, spec: NodeAssignmentSpec) -> None:
    """No CPU has two users: by the spec, or by the spec and what the kernel still has."""
    assert spec.pools is not None
    pool = spec.pools.shared | spec.pools.reserved
    assert spec.pools.shared
    users: dict[str, CpuSet] = {}
    for one in spec.containers:
        users[one.pod] = one.cpus | (one.moving.leaving if one.moving else CpuSet())
    taken = CpuSet()
    for name, cpus in users.items():
        assert cpus.isdisjoint(pool), name
        assert cpus.isdisjoint(taken), name
        taken |= cpus
    running = {one.name for one in node.pods}
    for name, (had, _) in node.reported.items():
        for other, others in users.items():
            if name != other and name in running:
                assert CpuSet.parse(had).isdisjoint(others), (name, other)


def report_some(rng: random.Random, node: MovingNode) -> None:
    """Have the enforcer put some containers in force; it may not have seen the newest spec."""
    if rng.random() < 0.8:
        node.report()
        return
    for one in node.spec["containers"]:
        if rng.random() < 0.5:
            node.reported[one["pod"]] = (one["cpus"], one.get("mems", ""))


def tell_some(rng: random.Random, node: MovingNode) -> None:
    """Have some pods told what leaves them, where pods are told."""
    if node.told is not None:
        uids = [pod.uid for pod in node.pods if rng.random() < 0.5]
        node.told = {uid: node.told.get(uid, node.now) for uid in uids}


def resized(rng: random.Random, before: PodView) -> PodView:
    """The pod after the kubelet has granted it other CPUs."""
    after = granted_pod(before.name, (rng.choice("123"), "64Mi"))
    return replace(after, bound=before.bound)


def change(rng: random.Random, node: MovingNode, number: int) -> None:
    kinds = ("come", "come", "come", "go", "go", "wait", "wait", "mode", "resize")
    match rng.choice(kinds):
        case "come":
            fresh = pod(f"p{number}", str(rng.choice((1, 1, 1, 2, 3))))
            node.pods.append(replace(fresh, bound=f"2030-01-01T00:{number:02}:00Z"))
        case "go" if node.pods:
            gone = rng.choice(node.pods)
            node.pods.remove(gone)
            node.reported.pop(gone.name, None)
        case "resize" if node.pods and node.told is not None:  # else others get CPUs at once
            at = rng.randrange(len(node.pods))
            node.pods[at] = resized(rng, node.pods[at])
        case "wait":
            node.wait(rng.choice((0.3, 1, 5, 70)))
        case "mode":
            node.policy["mode"] = rng.choice(("Dynamic", "Dynamic", "Dynamic", "Static"))


@pytest.mark.parametrize("seed", range(4))
def test_no_cpu_is_shared_and_each_move_comes_to_its_end(seed: int) -> None:
    moved = 0
    for history in range(HISTORIES // 4):
        rng = random.Random(f"{seed} {history}")
        pause = rng.choice(("0s", "10s"))
        policy = {"dynamic": {"movePause": pause, "maxMovesPerMinute": rng.choice((1, 3, 60))}}
        node = MovingNode([], [], policy, machine(*rng.choice(((8, 1, 2), (12, 2, 3)))))
        node.told = rng.choice((None, {}))
        for number in range(STEPS):
            change(rng, node, number)
            tell_some(rng, node)
            if rng.random() < 0.6:
                report_some(rng, node)
            check(node, spec := node.decide())
            moved += any(one.moving for one in spec.containers)
        for _ in range(8):
            node.report()
            node.wait(70)
            spec = node.decide()
            check(node, spec)
        node.policy["mode"] = "Static"
        for _ in range(4):
            node.report()
            node.wait(70)
            spec = node.decide()
            check(node, spec)
        assert not any(one.moving for one in spec.containers)
    assert moved > 5
