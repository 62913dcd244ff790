"""Whom the ClusterRole numapin-viewer lets read policies and assignments, on a real API server."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from numapin_lab.components.build import provide
from numapin_lab.controlplane.controllers import controller_manager
from numapin_lab.controlplane.kubectl import Kubectl
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.processes.daemons import kill
from numapin_lab.processes.ports import choose
from support.real.waiting import eventually

VIEWER = "numapin-viewer"
AGGREGATED = f"clusterrole/{VIEWER}"


@pytest.fixture
def user(installed: Kubectl) -> Iterator[str]:
    """A user without any right; what is bound to the user is deleted with the test."""
    name = f"user-{secrets.token_hex(4)}"
    yield name
    installed("delete", "clusterrolebinding", name, "--ignore-not-found")
    installed("delete", "rolebinding", name, "--ignore-not-found")


def bind(kubectl: Kubectl, kind: str, role: str, user: str) -> None:
    kubectl("create", kind, user, f"--clusterrole={role}", f"--user={user}")


def may(kubectl: Kubectl, user: str, verb: str, resource: str, namespace: str = "") -> bool:
    """What the API server would decide about a request."""
    plural, _, group = resource.partition(".")
    asked = {"verb": verb, "resource": plural, "group": group, "namespace": namespace}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": asked},
    }
    answer = kubectl("create", "--filename=-", "--output=json", text=json.dumps(review))
    return bool(json.loads(answer)["status"].get("allowed"))


def reads_all(kubectl: Kubectl, user: str) -> bool:
    kinds = ("nodeassignments", "nodereports", "nodetopologies", "cpupolicies")
    groups = [f"{kind}.numapin.io" for kind in kinds]
    return all(may(kubectl, user, verb, kind) for kind in groups for verb in ("get", "list"))


async def test_a_viewer_of_the_cluster_reads_and_does_not_write(
    installed: Kubectl, user: str
) -> None:
    assert not reads_all(installed, user)
    bind(installed, "clusterrolebinding", VIEWER, user)
    await eventually(partial(reads_all, installed, user))
    for verb in ("create", "update", "patch", "delete"):
        assert not may(installed, user, verb, "nodeassignments.numapin.io")
    assert not may(installed, user, "list", "pods")


async def test_a_role_in_a_namespace_shows_nothing(installed: Kubectl, user: str) -> None:
    """A RoleBinding gives no right to cluster-scoped objects, whatever its role says."""
    kinds = "--resource=pods,nodeassignments.numapin.io,cpupolicies.numapin.io"
    installed("create", "clusterrole", user, "--verb=get,list", kinds)
    try:
        bind(installed, "rolebinding", user, user)
        await eventually(lambda: may(installed, user, "list", "pods", "default"))
        assert not reads_all(installed, user)
    finally:
        installed("delete", "clusterrole", user)


@pytest.fixture(scope="module")
def aggregating(control_plane: ControlPlane, installed: Kubectl) -> Iterator[Kubectl]:
    """The controller that fills aggregated roles, and nothing else of its program."""
    found = provide(("kube-controller-manager",))
    programs = {**control_plane.programs, **{name: one.path for name, one in found.items()}}
    made = controller_manager(replace(control_plane, programs=programs), *choose(1), emulated=False)
    chosen = "--controllers=clusterrole-aggregation-controller"
    controller = replace(made, options=(*made.options, chosen))
    controller.start()
    yield installed
    pid = controller.daemon.pid()
    assert pid is not None, "it has ended by itself"
    kill(pid)


async def test_view_takes_it_in_only_if_an_administrator_says_so(
    aggregating: Kubectl, user: str
) -> None:
    kubectl = aggregating
    bind(kubectl, "clusterrolebinding", "view", user)
    bind(kubectl, "rolebinding", "view", f"{user}-of-one")
    await eventually(lambda: may(kubectl, user, "list", "pods"))
    assert not reads_all(kubectl, user)
    label = "rbac.authorization.k8s.io/aggregate-to-view"
    kubectl("label", AGGREGATED, f"{label}=true")
    try:
        await eventually(partial(reads_all, kubectl, user))
        assert may(kubectl, f"{user}-of-one", "list", "pods", "default")
        assert not reads_all(kubectl, f"{user}-of-one")
    finally:
        kubectl("label", AGGREGATED, f"{label}-")
        kubectl("delete", "rolebinding", f"{user}-of-one")
    await eventually(lambda: not reads_all(kubectl, user))


async def test_a_role_of_ones_own_takes_it_in(aggregating: Kubectl, user: str) -> None:
    kubectl, name = aggregating, f"looks-after-nodes-{user}"
    rule = "numapin.io/aggregate-to-viewer=true"
    kubectl("create", "clusterrole", name, f"--aggregation-rule={rule}")
    try:
        bind(kubectl, "clusterrolebinding", name, user)
        await eventually(partial(reads_all, kubectl, user))
    finally:
        kubectl("delete", "clusterrole", name)
