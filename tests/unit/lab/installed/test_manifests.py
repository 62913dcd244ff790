"""When numapin counts as installed, and what is said when it is not."""

from pathlib import Path
from typing import Any

import pytest

from numapin_lab.errors import LabError
from numapin_lab.images.build import Image
from numapin_lab.installed.cluster import named
from numapin_lab.installed.manifests import images, qualified, rolled_out, waiting


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("numapin-operator:0.1.0", "docker.io/library/numapin-operator:0.1.0"),
        ("team/numapin-operator:1", "docker.io/team/numapin-operator:1"),
        ("localhost/numapin-operator:1", "localhost/numapin-operator:1"),
        ("registry.example/a/b:1", "registry.example/a/b:1"),
        ("registry:5000/b:1", "registry:5000/b:1"),
    ],
)
def test_an_image_has_the_name_that_a_node_looks_for(image: str, full: str) -> None:
    assert qualified(image) == full


def test_the_images_of_all_pods_are_found() -> None:
    def workload(*names: str) -> dict[str, Any]:
        return {"spec": {"template": {"spec": {"containers": [{"image": one} for one in names]}}}}

    documents = [{"kind": "Namespace"}, workload("a:1", "b:1"), workload("b:1")]
    assert images(documents) == {"docker.io/library/a:1", "docker.io/library/b:1"}


def deployment(**status: int) -> dict[str, Any]:
    return {"metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": status}


def daemon_set(**status: int) -> dict[str, Any]:
    return {"metadata": {"generation": 1}, "spec": {}, "status": status}


ALL = {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2}
ONE = {"desiredNumberScheduled": 1, "updatedNumberScheduled": 1, "numberAvailable": 1}


@pytest.mark.parametrize(
    ("workload", "wanted"),
    [
        pytest.param(deployment(observedGeneration=2, **ALL), True, id="deployment"),
        pytest.param(deployment(observedGeneration=1, **ALL), False, id="older generation"),
        pytest.param(
            deployment(observedGeneration=2, **ALL | {"readyReplicas": 1}), False, id="one"
        ),
        pytest.param(
            deployment(observedGeneration=2, **ALL | {"replicas": 3}), False, id="an old pod"
        ),
        pytest.param(deployment(), False, id="new deployment"),
        pytest.param(daemon_set(observedGeneration=1, **ONE), True, id="daemon set"),
        pytest.param(
            daemon_set(observedGeneration=1, **ONE | {"numberAvailable": 0}), False, id="not ready"
        ),
        pytest.param(daemon_set(observedGeneration=1), False, id="no node counted yet"),
    ],
)
def test_a_workload_is_rolled_out_when_all_its_newest_pods_are_ready(
    workload: dict[str, Any], wanted: bool
) -> None:
    assert rolled_out(workload) is wanted


def test_why_containers_wait() -> None:
    states = [{"waiting": {"reason": "CrashLoopBackOff"}}, {"running": {}}]
    pod = {"status": {"containerStatuses": [{"state": state} for state in states]}}
    assert list(waiting(pod)) == ["CrashLoopBackOff"]
    assert list(waiting({"status": {}})) == []


def test_an_image_that_is_not_ours_is_named() -> None:
    ours = {"operator": Image("operator", Path("operator.tar"))}
    assert named("docker.io/library/numapin-operator:0.1.0", ours) is ours["operator"]
    with pytest.raises(LabError, match=r"the image docker.io/library/other:1"):
        named("docker.io/library/other:1", ours)
