"""The pods that controllers would create for the workloads of a file."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from numapin_cli.inputs.manifests import Manifest, read_manifests
from numapin_cli.inputs.objects import Objects, combined
from numapin_cli.subcommand import CommandError

Body = dict[str, Any]
TEMPLATE: Body = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 2, "memory": "1Gi"}}}]},
}


def workload(kind: str, spec: Body | None = None, /, **metadata: Any) -> Body:
    version = "batch/v1" if kind in {"Job", "CronJob"} else "apps/v1"
    body = {"template": TEMPLATE, **(spec or {})}
    if kind == "CronJob":
        body = {"schedule": "0 * * * *", "jobTemplate": {"spec": body}, **(spec or {})}
    named = {"name": "x", "namespace": "shop", **metadata}
    return {"apiVersion": version, "kind": kind, "metadata": named, "spec": body}


def pod(name: str, *owner: str, **labels: str) -> Body:
    """A pod of the cluster; owner: the kind and the name of its controller."""
    owners = [{"kind": owner[0], "name": owner[1], "controller": True}] if owner else []
    named = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "labels": labels}
    metadata = {**named, "ownerReferences": owners}
    return {"kind": "Pod", "metadata": metadata, "spec": TEMPLATE["spec"]}


def read(folder: Path, *documents: Body, name: str = "given.yaml") -> list[Manifest]:
    (folder / name).write_text(yaml.safe_dump_all(documents))
    return read_manifests([folder / name])


def given(folder: Path, *documents: Body) -> Objects:
    return combined([], read(folder, *documents))


@pytest.mark.parametrize(
    ("document", "pods"),
    [
        pytest.param(workload("StatefulSet", {"replicas": 2}), ["shop/x-0", "shop/x-1"], id="set"),
        pytest.param(
            workload("StatefulSet", {"replicas": 2, "ordinals": {"start": 5}}),
            ["shop/x-5", "shop/x-6"],
            id="ordinals",
        ),
        pytest.param(
            workload("Deployment", {"replicas": 2}),
            ["shop/x-s96tb76nrp-2nsf8", "shop/x-s96tb76nrp-wblfk"],
            id="deployment",
        ),
    ],
)
def test_names_are_those_of_the_controller_and_always_the_same(
    tmp_path: Path, document: Body, pods: list[str]
) -> None:
    assert list(given(tmp_path, document).of("Pod")) == pods


@pytest.mark.parametrize(
    ("document", "count"),
    [
        (workload("Deployment"), 1),
        (workload("Deployment", {"replicas": None}), 1),
        (workload("ReplicaSet", {"replicas": 3}), 3),
        (workload("DaemonSet", {"replicas": 7}), 1),
        (workload("Job"), 1),
        (workload("Job", {"parallelism": 3}), 3),
        (workload("Job", {"completions": 5}), 1),
        (workload("Job", {"parallelism": 4, "completions": 3}), 3),
        (workload("Job", {"parallelism": 2, "completionMode": "Indexed", "completions": 9}), 2),
        (workload("Job", {"parallelism": 3, "completions": 5}) | {"status": {"succeeded": 4}}, 1),
        (workload("Job", {"parallelism": 3}) | {"status": {"succeeded": 4}}, 3),
        (workload("Job", {"managedBy": "kubernetes.io/job-controller"}), 1),
        (workload("CronJob"), 1),
        (workload("Job", name=None, generateName="run-"), 1),
    ],
)
def test_as_many_pods_as_run_at_once(tmp_path: Path, document: Body, count: int) -> None:
    objects = given(tmp_path, document)
    assert len(objects.of("Pod")) == count
    assert objects.notes == ()


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (workload("Deployment", {"replicas": 0}), "left out: Deployment shop/x: has 0 replicas"),
        (workload("Deployment", {"paused": True}), "is paused, so its pods stay as they are"),
        (workload("Job", {"suspend": True}), "left out: Job shop/x: is suspended"),
        (workload("Job", {"parallelism": 0}), "left out: Job shop/x: runs 0 pods"),
        (workload("Job", {"managedBy": "a/b"}), "is managed by a/b, not by the Job controller"),
        (workload("CronJob", {"suspend": True}), "left out: CronJob shop/x: is suspended"),
        (
            workload("Job", annotations={"helm.sh/hook": "post-install"}),
            "left out: Job shop/x: a hook of Helm, which runs and ends at another time",
        ),
        (
            workload("Job") | {"status": {"conditions": [{"type": "Complete", "status": "True"}]}},
            "left out: Job shop/x: has ended",
        ),
    ],
)
def test_what_creates_no_pods_is_said(tmp_path: Path, document: Body, why: str) -> None:
    objects = given(tmp_path, document)
    assert not objects.of("Pod")
    (note,) = objects.notes
    assert note.endswith(why)


@pytest.mark.parametrize(
    ("kind", "owner", "labels"),
    [
        ("Deployment", "ReplicaSet", {"pod-template-hash": "s96tb76nrp"}),
        ("StatefulSet", "StatefulSet", {"apps.kubernetes.io/pod-index": "0"}),
        ("StatefulSet", "StatefulSet", {"controller-revision-hash": "x-s96tb76nrp"}),
        ("Job", "Job", {"batch.kubernetes.io/job-name": "x"}),
        ("DaemonSet", "DaemonSet", {"controller-revision-hash": "s96tb76nrp"}),
    ],
)
def test_pods_have_the_labels_and_the_owner_that_controllers_give(
    tmp_path: Path, kind: str, owner: str, labels: dict[str, str]
) -> None:
    (made,) = given(tmp_path, workload(kind)).of("Pod").values()
    assert {"app": "x", **labels}.items() <= made.metadata["labels"].items()
    (reference,) = made.metadata["ownerReferences"]
    assert (reference["kind"], reference["controller"]) == (owner, True)


def test_other_kinds_are_left_out_and_counted(tmp_path: Path) -> None:
    objects = given(
        tmp_path,
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}},
        {"apiVersion": "v1", "kind": "ConfigMap"},
        workload("Job") | {"apiVersion": "batch.volcano.sh/v1alpha1"},
        workload("StatefulSet"),
    )
    assert list(objects.of("Pod")) == ["shop/x-0"]
    assert objects.notes == (
        "left out: 1 ConfigMap, 1 Job.batch.volcano.sh, 2 Service: nothing is planned for these"
        " kinds",
    )


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (workload("Deployment", {"replicas": "3"}), "spec.replicas: must be a number from 0 to"),
        (workload("Deployment", {"replicas": True}), "spec.replicas: must be a number"),
        (workload("Job", {"parallelism": 10**9}), "spec.parallelism: must be a number"),
        (workload("Job", {"template": None}), "document 1: spec.template.spec: is missing"),
        (
            workload("CronJob", {"jobTemplate": 1}),
            "spec.jobTemplate.spec.template.spec: is missing",
        ),
        (workload("Job", name=""), "document 1: metadata.name: is missing; name the Job"),
        (workload("Job") | {"apiVersion": "batch/v1beta1"}, "apiVersion: must be batch/v1, not"),
        (
            workload("StatefulSet", {"template": {"spec": {"containers": [{"name": 3}]}}}),
            "document 1: spec.template: pod x-0: spec.containers[0].name",
        ),
    ],
)
def test_what_is_wrong_with_a_workload_is_said_with_its_place(
    tmp_path: Path, document: Body, message: str
) -> None:
    with pytest.raises(CommandError) as refused:
        given(tmp_path, document)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("document", "owner", "labels", "replaced"),
    [
        (workload("StatefulSet"), ("StatefulSet", "x"), {}, True),
        (workload("Deployment"), ("ReplicaSet", "x-abc"), {"pod-template-hash": "abc"}, True),
        (workload("Deployment"), ("ReplicaSet", "x-y-abc"), {"pod-template-hash": "abc"}, False),
        (workload("Deployment", {"paused": True}), ("ReplicaSet", "x-"), {}, False),
        (workload("Deployment", namespace="other"), ("ReplicaSet", "x-None"), {}, False),
        (workload("CronJob"), ("Job", "x-1"), {}, False),
    ],
)
def test_pods_of_the_cluster_are_replaced_by_those_of_their_workload(
    tmp_path: Path, document: Body, owner: tuple[str, str], labels: dict[str, str], replaced: bool
) -> None:
    cluster = read(tmp_path, pod("old", *owner, **labels), pod("other"), name="now.yaml")
    objects = combined(cluster, read(tmp_path, document))
    assert ("shop/old" in objects.of("Pod")) is not replaced
    assert "shop/other" in objects.of("Pod")
    assert any("1 pod of the cluster replaced by 1" in note for note in objects.notes) is replaced


def test_what_kubectl_get_all_prints_has_each_pod_once(tmp_path: Path) -> None:
    """Workloads that the API server has, with the ReplicaSets and the pods made from them."""
    owner = [{"kind": "Deployment", "name": "x", "controller": True}]
    listed = (
        pod("old", "ReplicaSet", "x-abc", **{"pod-template-hash": "abc"}),
        workload("Deployment", uid="uid-d"),
        workload("ReplicaSet", name="x-abc", uid="uid-r", ownerReferences=owner),
    )
    assert list(given(tmp_path, *listed).of("Pod")) == ["shop/old"]
    assert len(given(tmp_path, *listed[1:]).of("Pod")) == 1, "of the Deployment"
    assert len(given(tmp_path, listed[2]).of("Pod")) == 1, "of the ReplicaSet alone"
    as_cluster = combined(read(tmp_path, *listed, name="now.yaml"), [])
    assert list(as_cluster.of("Pod")) == ["shop/old"]
    assert as_cluster.notes == (
        "left out: 1 Deployment, 1 ReplicaSet of the cluster: its pods are planned as they are",
    )
