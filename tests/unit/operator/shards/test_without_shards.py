"""One operator for all nodes, the default: its requests are those of a release without shards."""

import asyncio

from numapin_api import names
from numapin_api.status.policy import CpuPolicyStatus
from numapin_client.client import ApiClient
from numapin_client.resources import Key
from numapin_operator.heartbeats.watcher import lease_informer
from numapin_operator.installation.leader_election import LeaderElector
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.informers import LIVE_PODS, build_informers
from numapin_operator.settings import parse_settings
from support.fakes.apiserver import FakeApiServer
from support.real.waiting import eventually

LEASES = "/apis/coordination.k8s.io/v1"
OURS = f"{LEASES}/namespaces/{names.NAMESPACE}/leases"


def sent(server: FakeApiServer) -> list[tuple[str, str, dict[str, str]]]:
    """Each request without what differs from time to time."""
    found = []
    for one in server.requests:
        query = dict(one.query)
        for name in ("resourceVersion", "timeoutSeconds"):
            query.pop(name, None)
        found.append((one.method, one.path, query))
    return found


async def test_the_election_sends_what_it_always_sent(
    server: FakeApiServer, api: ApiClient
) -> None:
    assert parse_settings([], {}).shards == 1
    elector = LeaderElector(api, Key(names.LEADER_LEASE, names.NAMESPACE), "pod")
    for _ in range(3):
        assert await elector.attempt()
    others = ("GET", f"{LEASES}/leases", {"fieldSelector": f"metadata.name={names.LEADER_LEASE}"})
    one = f"{OURS}/{names.LEADER_LEASE}"
    assert sent(server) == [
        others,
        ("GET", one, {}),
        ("POST", OURS, {}),
        others,
        ("PUT", one, {}),
        ("PUT", one, {}),
    ]
    [lease] = server.objects.values()
    assert "annotations" not in lease["metadata"]
    assert "/" not in lease["spec"]["holderIdentity"]


async def test_the_watches_are_those_it_always_had(server: FakeApiServer, api: ApiClient) -> None:
    informers = [*build_informers(api, ClusterState()).values(), lease_informer(api, "n")]
    assert all(one._timing.sieve is None for one in informers)
    async with asyncio.TaskGroup() as tasks:
        running_ones = [tasks.create_task(one.run()) for one in informers]
        await eventually(lambda: len(server.watchers) == len(informers))
        for task in running_ones:
            task.cancel()
    labels = ",".join(f"{key}={text}" for key, text in names.HEARTBEAT_LABELS.items())
    selected = {
        "/api/v1/pods": {"fieldSelector": LIVE_PODS},
        "/api/v1/nodes": {},
        "/api/v1/namespaces": {},
        f"/apis/{names.API_VERSION}/nodeassignments": {},
        f"/apis/{names.API_VERSION}/nodereports": {},
        f"/apis/{names.API_VERSION}/nodetopologies": {},
        f"{LEASES}/namespaces/n/leases": {"labelSelector": labels},
    }
    watch = {"watch": "1", "allowWatchBookmarks": "true"}
    wanted = [("GET", path, {**query, **watch}) for path, query in selected.items()]
    found = [
        (method, path, {key: text for key, text in query.items() if key != "limit"})
        for method, path, query in sent(server)
    ]
    lists = [("GET", path, query) for path, query in selected.items()]
    assert sorted(found, key=str) == sorted([*wanted, *lists], key=str)


def test_a_status_says_nothing_of_shards() -> None:
    assert "shards" not in CpuPolicyStatus().to_wire()
