"""A write that the role does not allow shows on /readyz, until one like it succeeds."""

import json

import pytest

from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_client.client import ApiClient
from numapin_client.errors import ClientError, ForbiddenError
from numapin_client.resources import LEASES, Key
from numapin_operator.api_server import ApiCluster
from numapin_operator.cluster import PodEvent
from numapin_operator.installation.missing_rights import FORGET_SECONDS, MissingRights
from support.fakes.apiserver import FakeApiServer
from support.fakes.apiserver_answers import Answer, status
from support.fakes.manual_clock import ManualClock
from support.values.operator import REPORTER, node_view

WHO = 'User "system:serviceaccount:numapin-system:numapin-operator"'
EVENT = PodEvent("default", "a", "uid", "NotEnoughCPUs", "4 wanted")


def forbidden(why: str) -> Answer:
    return Answer(
        403, body=json.dumps(status(403, "Forbidden", f'"x" is forbidden: {why}')).encode()
    )


def no_right(verb: str, resource: str) -> Answer:
    return forbidden(
        f'{WHO} cannot {verb} resource "{resource}" in API group "numapin.io" at the cluster scope'
    )


@pytest.fixture
def rights(api: ApiClient, clock: ManualClock) -> MissingRights:
    made = MissingRights(clock)
    api.connection.after_write = made.note
    return made


async def test_a_missing_right_is_named_until_a_write_succeeds(
    server: FakeApiServer, api: ApiClient, rights: MissingRights
) -> None:
    cluster = ApiCluster(api, REPORTER)
    server.answers = [no_right("create", "nodeassignments")]
    with pytest.raises(ForbiddenError, match="apply the manifests of this version again"):
        await cluster.create_assignment(node_view(), NodeAssignmentSpec())
    [(what, why)] = rights.describe().items()
    assert what == "right to create nodeassignments"
    assert 'cannot create resource "nodeassignments" in API group "numapin.io"' in why
    assert why.endswith("the role lacks this right: apply the manifests of this version again")

    await cluster.read_assignment("node-1")
    assert rights.describe(), "a read shows nothing of it"
    made = await cluster.create_assignment(node_view("node-2"), NodeAssignmentSpec())
    assert rights.describe() == {}
    server.answers = [no_right("update", "nodeassignments"), no_right("delete", "nodeassignments")]
    with pytest.raises(ForbiddenError):
        await cluster.replace_spec(made, node_view("node-2"), NodeAssignmentSpec())
    with pytest.raises(ForbiddenError):
        await cluster.delete_assignment(made)
    assert rights.describe().keys() == {
        "right to update nodeassignments",
        "right to delete nodeassignments",
    }


@pytest.mark.parametrize(
    ("code", "reason"),
    [(404, "NotFound"), (409, "Conflict"), (409, "AlreadyExists"), (422, "Invalid")],
)
async def test_an_answer_that_only_who_has_the_right_gets_shows_that_it_is_back(
    server: FakeApiServer, api: ApiClient, rights: MissingRights, code: int, reason: str
) -> None:
    cluster = ApiCluster(api, REPORTER)
    refused = Answer(code, body=json.dumps(status(code, reason, "no")).encode())
    server.answers = [no_right("create", "nodeassignments"), refused]
    for _ in range(2):
        with pytest.raises(ClientError):
            await cluster.create_assignment(node_view(), NodeAssignmentSpec())
    assert rights.describe() == {}


@pytest.mark.parametrize(
    "why",
    [
        "unable to create new content in namespace default because it is being terminated",
        "exceeded quota: q, requested: count/events.events.k8s.io=1, used: 1, limited: 1",
        'ValidatingAdmissionPolicy "p" denied request: no',
    ],
)
async def test_a_tenant_cannot_make_the_operator_unready(
    server: FakeApiServer, api: ApiClient, rights: MissingRights, why: str
) -> None:
    server.answers = [forbidden(why)]
    with pytest.raises(ForbiddenError) as caught:
        await ApiCluster(api, REPORTER).post_event(EVENT)
    assert "manifests" not in str(caught.value)
    assert rights.describe() == {}


async def test_a_policy_cannot_make_the_operator_unready_by_asking_for_evictions(
    server: FakeApiServer, api: ApiClient, rights: MissingRights
) -> None:
    """The right is that of a component, which need not be installed."""
    server.answers = [no_right("create", "pods/eviction")]
    with pytest.raises(ForbiddenError):
        await ApiCluster(api, REPORTER).evict("default", "a", "uid")
    assert rights.describe() == {}


async def test_a_write_that_is_not_tried_again_is_forgotten(
    server: FakeApiServer, api: ApiClient, rights: MissingRights, clock: ManualClock
) -> None:
    server.answers = [no_right("create", "events"), no_right("patch", "leases")]
    with pytest.raises(ForbiddenError):
        await ApiCluster(api, REPORTER).post_event(EVENT)
    await clock.advance(1)
    with pytest.raises(ForbiddenError):
        await api.merge_patch(LEASES, Key("a", "b"), {})
    assert rights.describe().keys() == {"right to create events", "right to patch leases"}
    await clock.advance(FORGET_SECONDS - 1)
    assert rights.describe().keys() == {"right to patch leases"}
