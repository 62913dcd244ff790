"""Init containers that run again after the sandbox of their pod was made again."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import PodView, mark_outdated, plan_node, resolve
from support.values.placement import NO_UIDS, history, machine, pod, policy, resources

MACHINE = machine(12, 1)
SIDECAR = {"restartPolicy": "Always"}
Init = tuple[str, str, dict[str, str]]
"""Name, CPUs, and more fields of an init container."""


def alone(cpu: str) -> list[Init]:
    return [("init", cpu, {})]


def sandboxed(*inits: Init, app: str = "4", done: bool, granted: bool = True) -> PodView:
    """A pod whose ordinary init containers run, or have ended."""
    listed: list[dict[str, Any]] = [
        {"name": name, "resources": resources(cpu)} | more for name, cpu, more in inits
    ]
    apps: list[dict[str, Any]] = [{"name": "app", "resources": resources(app)}]
    state: dict[str, Any] = {"terminated": {"exitCode": 0}} if done else {"running": {}}
    status = {
        "initContainerStatuses": [
            {"name": one["name"], "state": {"running": {}} if "restartPolicy" in one else state}
            | (_allocated(one) if granted else {})
            for one in listed
        ],
        "containerStatuses": [{"name": "app"} | _allocated(apps[0])] if granted else [],
    }
    return parse_pod(
        {
            "metadata": {"name": "a", "uid": "uid-a"},
            "spec": {"containers": apps, "initContainers": listed},
            "status": status,
        }
    )


def _allocated(container: dict[str, Any]) -> dict[str, Any]:
    return {"allocatedResources": container["resources"]["requests"]}


def has(spec: NodeAssignmentSpec) -> dict[str, str]:
    return {one.container: str(one.cpus) for one in spec.containers if one.pod == "a"}


@pytest.mark.parametrize("granted", [True, False])
@pytest.mark.parametrize(
    ("inits", "app", "shares"),
    [
        pytest.param([("init", "4", {})], "4", {"init": "1-4", "app": "1-4"}, id="as-many"),
        pytest.param([("init", "2", {})], "4", {"init": "1-2", "app": "1-4"}, id="fewer"),
        pytest.param([("init", "6", {})], "4", {"init": "1-4", "app": "1-4"}, id="more"),
        pytest.param([("init", "4", {})], "500m", {}, id="none-after-it-has-any"),
        pytest.param(
            [("one", "2", {}), ("two", "3", {})],
            "2",
            {"one": "1-2", "two": "1-2", "app": "1-2"},
            id="two",
        ),
        pytest.param(
            [("init", "2", {}), ("sidecar", "2", SIDECAR)],
            "2",
            {"init": "1-2", "sidecar": "1-2", "app": "3-4"},
            id="a-sidecar-after-it",
        ),
        pytest.param(
            [("sidecar", "2", SIDECAR), ("init", "4", {})],
            "2",
            {"init": "3-4", "sidecar": "1-2", "app": "3-4"},
            id="a-sidecar-before-it",
        ),
    ],
)
def test_it_shares_the_cpus_of_the_containers_after_it(
    inits: list[Init], app: str, shares: dict[str, str], granted: bool
) -> None:
    runs = sandboxed(*inits, app=app, done=False, granted=granted)
    ended = sandboxed(*inits, app=app, done=True, granted=granted)
    lasting = history(MACHINE, policy(), [runs], [ended])
    again = history(MACHINE, policy(), [runs], [ended], [runs])
    if shares:
        assert has(again) == shares
        assert again == plan_node(MACHINE, policy(), again, [runs], NO_UIDS).spec
        assert again.pools == lasting.pools, "nobody else gives anything for it"
    else:
        assert "app" not in has(again)
    assert has(plan_node(MACHINE, policy(), again, [ended], NO_UIDS).spec) == has(lasting)


def test_what_the_scheduler_counts_for_others_stays_theirs() -> None:
    inits = alone("4")
    runs, ended = (sandboxed(*inits, done=done) for done in (False, True))
    spec = history(MACHINE, policy(), [runs], [ended], [runs], [runs, pod("b", "6")])
    assert {one.pod for one in spec.containers} == {"a", "b"}
    assert not spec.refused


def test_its_memory_is_where_that_of_the_containers_after_it_is() -> None:
    local = policy(memory={"policy": "SingleNUMA"})
    inits = alone("4")
    runs, ended = (sandboxed(*inits, done=done) for done in (False, True))
    spec = history(machine(12, 1, 2), local, [runs], [ended], [runs])
    init, app = spec.containers
    assert (init.container, init.mems, init.memory) == ("init", app.mems, ())


@pytest.mark.parametrize("scope", ["Container", "Pod"])
def test_it_is_not_outdated_for_having_fewer_cpus(scope: str) -> None:
    aligned = policy(topology={"policy": "SingleNUMANode", "scope": scope})
    inits = alone("5")
    runs, ended = (sandboxed(*inits, done=done) for done in (False, True))
    spec = history(MACHINE, aligned, [runs], [ended], [runs])
    assert has(spec) == {"init": "1-4", "app": "1-4"}
    _, found = mark_outdated(resolve(MACHINE, aligned), spec, [runs], edited=True)
    assert found == ()
    narrow = aligned.model_copy(update={"reserved": policy(reserved={"cpus": "1"}).reserved})
    _, found = mark_outdated(resolve(MACHINE, narrow), spec, [runs], edited=True)
    assert [one.container for one in found] == ["app"]


def test_a_resize_of_its_pod_waits_until_it_has_ended() -> None:
    inits = alone("2")
    runs, ended = (sandboxed(*inits, done=done) for done in (False, True))
    larger = replace(sandboxed(*inits, app="5", done=False), edited=True)
    spec = history(MACHINE, policy(), [runs], [ended], [larger])
    assert has(spec)["app"] == "1-4"
    spec = plan_node(MACHINE, policy(), spec, [sandboxed(*inits, app="5", done=True)], NO_UIDS).spec
    assert has(spec) == {"app": "1-5"}
