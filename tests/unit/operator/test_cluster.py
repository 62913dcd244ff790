"""What the operator writes to the API server that the fake of `Cluster` does not show."""

from numapin_client.client import connect
from numapin_operator.cluster import ApiCluster, PodEvent
from support.fakes.apiserver import FakeApiServer


async def test_an_event_about_a_pod_has_the_action_that_failed() -> None:
    """Source: Kubernetes `events.k8s.io/v1`, `Event.action`: "taken/failed", not empty."""
    event = PodEvent("ns", "pod", "uid-1", "TopologyAffinityError", "no NUMA node has 8 CPUs")
    async with FakeApiServer() as server, connect(server.login) as api:
        await ApiCluster(api, "replica-1").post_event(event)
        (posted,) = server.objects.values()
    assert (posted["type"], posted["action"]) == ("Warning", "Place")
    assert (posted["reason"], posted["note"]) == (event.reason, event.note)
    assert posted["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "ns",
        "name": "pod",
        "uid": "uid-1",
    }
