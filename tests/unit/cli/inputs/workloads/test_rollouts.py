"""Which pods of a workload end before its controller creates a new one."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from numapin_cli.inputs.manifests import read_manifests
from numapin_cli.inputs.objects import combined
from numapin_cli.main import main
from support.fakes.worlds.described_cluster import cluster
from support.values.operator import Body, pod_body

Capture = pytest.CaptureFixture[str]
HASH = {"pod-template-hash": "abc"}


def workload(kind: str, name: str = "x", **spec: Any) -> Body:
    """A workload whose pods ask for 4 CPUs; each node has 6 (node-1) or 5 (node-2) to give."""
    resources = {"limits": {"cpu": 4, "memory": "64Mi"}}
    body = {"template": {"spec": {"containers": [{"name": "c", "resources": resources}]}}, **spec}
    version = "batch/v1" if kind in {"Job", "CronJob"} else "apps/v1"
    if kind == "CronJob":
        body = {"jobTemplate": {"spec": body}, **spec}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": body}


def old(name: str, kind: str, owner: str, **more: Any) -> Body:
    """A pod with 4 CPUs that the workload already has."""
    body = pod_body(name, **{"cpu": "4", **more})
    body["metadata"]["labels"] = HASH
    body["metadata"]["ownerReferences"] = [
        {"kind": kind, "name": owner, "uid": "u", "controller": True}
    ]
    return body


def rolling(strategy: str, **fields: Any) -> Body:
    return {strategy: {"rollingUpdate": fields}}


OF_SET = old("x-0", "ReplicaSet", "x-abc")
STATEFUL = old("x-0", "StatefulSet", "x")
DAEMON = old("x-abcde", "DaemonSet", "x")
RUN = old("x-1-abcde", "Job", "x-29000000")


@pytest.mark.parametrize(
    ("document", "pod", "fits", "assumed"),
    [
        (workload("Deployment"), OF_SET, False, "all stay until a new one is ready (maxSurge is"),
        (workload("Deployment", **rolling("strategy", maxSurge="1%")), OF_SET, False, "all stay"),
        (workload("Deployment", **rolling("strategy", maxSurge=0)), OF_SET, True,
         "of each node one has ended first (maxSurge 0)"),
        (workload("Deployment", **rolling("strategy", maxSurge="0%")), OF_SET, True, "maxSurge 0"),
        (workload("Deployment", strategy={"type": "Recreate"}), OF_SET, True,
         "1 pod of Deployment default/x on the nodes that were read: has ended first (strategy"),
        (workload("Deployment", "y", strategy={"type": "Recreate"}), OF_SET, False, ""),
        (workload("ReplicaSet", "x-abc"), OF_SET, False, "a ReplicaSet replaces no pods"),
        (workload("StatefulSet"), STATEFUL, True, "default/x-0 has ended first, others stay"),
        (workload("StatefulSet", replicas=2), STATEFUL, False, "all stay"),
        (workload("StatefulSet", **rolling("updateStrategy", partition=1)), STATEFUL, True,
         "partition keeps the roll-out from it"),
        (workload("DaemonSet"), DAEMON, True, "each on its node (maxSurge 0)"),
        (workload("DaemonSet", **rolling("updateStrategy", maxSurge="10%")), DAEMON, False,
         "until a new one is ready on their node"),
        (workload("Job"), old("x-abcde", "Job", "x"), True, "by creating the Job again"),
        (workload("CronJob"), RUN, False, "all stay (a CronJob replaces no pods)"),
        (workload("CronJob", concurrencyPolicy="Forbid"), RUN, True, "(concurrencyPolicy)"),
        (workload("CronJob", concurrencyPolicy="Replace"), RUN, True, "(concurrencyPolicy)"),
    ],
)  # fmt: skip
def test_a_new_pod_is_explained_beside_those_that_are_there_then(  # noqa: PLR0917
    tmp_path: Path, capsys: Capture, document: Body, pod: Body, fits: bool, assumed: str
) -> None:
    (tmp_path / "now.json").write_text(cluster(pod).dump())
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(document))
    files = ["-f", str(tmp_path / "x.yaml"), "--cluster", str(tmp_path / "now.json")]
    status = main(["explain", *files, "--node", "node-1", "-o", "json"])
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    assert (status == 0) is fits, found
    assert assumed in " ".join(found["assumed"])
    assert bool(found["assumed"]) is bool(assumed)
    main(["explain", *files, "--node", "node-1"])
    assert ("assumed: " in capsys.readouterr().out) is bool(assumed)


def test_of_a_deployment_without_surge_one_pod_a_node_ends(tmp_path: Path, capsys: Capture) -> None:
    pods = [old(name, "ReplicaSet", "x-abc", cpu="2") for name in ("x-0", "x-1")]
    (tmp_path / "now.json").write_text(cluster(*pods).dump())
    document = workload("Deployment", **rolling("strategy", maxSurge=0))
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(document))
    files = ["-f", str(tmp_path / "x.yaml"), "--cluster", str(tmp_path / "now.json")]
    assert main(["explain", *files, "--node", "node-1"]) == 0, "2 CPUs free, 2 of the one that ends"
    assert "c: CPUs 4-7" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("document", "pods", "left"),
    [
        (workload("StatefulSet", replicas=3, **rolling("updateStrategy", partition=2)),
         ["x-0", "x-1", "x-2", "x-3"], {"x-0": 1, "x-1": 1, "x-2": 2}),
        (workload("StatefulSet", replicas=2, **rolling("updateStrategy", partition=9)),
         ["x-0", "x-1", "x-2"], {"x-0": 1, "x-1": 1}),
        (workload("StatefulSet", replicas=2, **rolling("updateStrategy", partition=2)),
         ["x-0"], {"x-0": 1, "x-1": 2}),
        (workload("StatefulSet", replicas=2, ordinals={"start": 4},
                  **rolling("updateStrategy", partition=1)),
         ["x-4", "x-5"], {"x-4": 1, "x-5": 2}),
        (workload("CronJob", concurrencyPolicy="Forbid"), ["x-29000000"], {"": 2}),
    ],
)  # fmt: skip
def test_what_a_roll_out_leaves_as_it_is_stays_in_a_plan(
    tmp_path: Path, document: Body, pods: list[str], left: dict[str, int]
) -> None:
    """left: the pods, with 1 for the old one and 2 for the new one."""
    kind = "Job" if document["kind"] == "CronJob" else document["kind"]
    there = [old(name, kind, name if kind == "Job" else "x", node="node-1") for name in pods]
    (tmp_path / "now.yaml").write_text(yaml.safe_dump_all(there))
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(document))
    cluster_has, written = (read_manifests([tmp_path / one]) for one in ("now.yaml", "x.yaml"))
    objects = combined(cluster_has, written)
    found = {one.content["metadata"]["name"]: bool(one.creator) + 1 for one in
             objects.of("Pod").values()}  # fmt: skip
    if kind == "Job":
        found = dict.fromkeys([""], *found.values())
    assert found == left


def test_the_last_pods_of_a_cluster_can_be_scaled_away(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "now.json").write_text(cluster(OF_SET).dump())
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(workload("Deployment", replicas=0)))
    files = ["-f", str(tmp_path / "x.yaml"), "--cluster", str(tmp_path / "now.json")]
    assert main(["plan", *files, "-o", "diff"]) == 0
    assert "-" in capsys.readouterr().out
