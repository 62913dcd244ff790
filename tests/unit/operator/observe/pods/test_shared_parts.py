"""Pods of one workload share what they have in common."""

from numapin_operator.observe.pods import shared_parts
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.observe.pods.shared_parts import MAX_SHARED_CONTAINERS, MAX_SHARED_LABELS
from support.values.operator import pod_body, pod_view


def test_pods_of_one_workload_share_containers_and_labels() -> None:
    one, other = (pod_view(name, labels={"app": "a", "tier": "b"}) for name in ("one", "other"))
    assert one.containers is other.containers
    assert one.labels is other.labels
    assert pod_view("third", "4", labels={"app": "b"}).labels == {"app": "b"}


def test_texts_of_labels_are_shared() -> None:
    one, other = (pod_view("a", labels={"app": "-".join("xy"), "pod": pod}) for pod in "ab")
    assert one.labels["app"] is other.labels["app"]


def test_what_is_large_is_not_remembered() -> None:
    """A tenant must not fill the memory with pods that have nothing in common."""
    labels = {f"label-{number}": "x" for number in range(MAX_SHARED_LABELS + 1)}
    body = pod_body("large", labels=labels)
    container = body["spec"]["containers"][0]
    body["spec"]["containers"] = [
        container | {"name": f"c{number}"} for number in range(MAX_SHARED_CONTAINERS + 1)
    ]
    before = shared_parts._containers.cache_info(), shared_parts._labels.cache_info()
    pod = parse_pod(body)
    assert (shared_parts._containers.cache_info(), shared_parts._labels.cache_info()) == before
    assert (len(pod.containers), pod.labels) == (MAX_SHARED_CONTAINERS + 1, labels)
