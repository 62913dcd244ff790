"""What a policy said when it last reached every node: stored, lost, damaged, of release 0.1."""

import json
from copy import deepcopy
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import pytest

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_client.errors import ForbiddenError
from numapin_operator.nodes.picture import picture_of
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.records import PolicyView
from numapin_operator.observe.revisions import LONGEST_NAME, Revision, Revisions
from support.fakes.worlds.rollout_world import AFTER, BEFORE, NODES, World, first_in_force
from support.values.operator import node_view, policy_body

LAST = NODES[-1]
SPEC = CpuPolicySpec.model_validate({"reserved": {"count": 2}, "releaseDelay": "5m"})


@pytest.fixture
async def world() -> World:
    return await first_in_force()


async def restarted(world: World) -> None:
    world.operator = world.started()
    await world.settle()


async def placed_by(world: World) -> str:
    """What a new pod gets on a node that waits: 2-3 by the settings that are in force there."""
    await world.add_pod("new", LAST)
    return world.held(LAST)["new"]


async def test_a_revision_that_is_deleted_amid_a_rollout_is_stored_again(world: World) -> None:
    await world.apply("policy", AFTER)
    before = dict(world.cluster.revisions)
    assert before
    world.cluster.revisions.clear()
    await world.settle()
    assert world.cluster.revisions == before
    await restarted(world)
    assert await placed_by(world) == "2-3"


async def test_without_its_revision_a_node_that_waits_keeps_its_settings(world: World) -> None:
    await world.apply("policy", AFTER | {"memory": {"policy": "Static"}})
    waiting = set(NODES) - world.changed()
    world.cluster.revisions.clear()  # while no operator runs
    await restarted(world)
    assert await placed_by(world) == "2-3"
    assert {world.reserved(name) for name in waiting - {LAST}} == {"0-1"}
    assert {world.cluster.assignments[name]["spec"]["mode"] for name in NODES} == {"Static"}
    for _ in range(2 * len(NODES)):
        await world.answer()
    assert world.changed() == set(NODES) - {LAST}, "the pod has a CPU that is reserved now"
    assert world.rolled_out().generation == 2


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param({"spec": {"reserved": {"count": 7}}}, id="another-spec"),
        pytest.param({"spec": {"reserved": {"count": "many"}}}, id="an-invalid-spec"),
        pytest.param({"metadata": {"uid": "other", "name": "policy"}}, id="another-policy"),
        pytest.param({"spec": None}, id="no-spec"),
    ],
)
async def test_a_damaged_revision_is_not_believed_and_stored_again(
    world: World, damage: dict[str, Any]
) -> None:
    await world.apply("policy", AFTER)
    ((name, body),) = world.cluster.revisions.items()
    whole = deepcopy(body)
    body["data"] = body["data"] | damage
    assert Revision.decode(body) is None
    stranger = world.started()
    stranger.observe()
    assert list(stranger.state.revisions.stored()) == []
    await world.settle()
    assert world.cluster.revisions == {name: whole}


async def test_what_may_be_edited_is_not_read(world: World) -> None:
    """The API server lets nobody change `data`; `revision`, labels and owners may be edited."""
    await world.apply("policy", AFTER)
    ((name, body),) = world.cluster.revisions.items()
    edited = body | {"revision": 99}
    edited["metadata"] = body["metadata"] | {"ownerReferences": []}
    world.cluster.revisions[name] = edited
    await restarted(world)
    assert await placed_by(world) == "2-3"


async def test_an_object_of_release_0_1_is_read_and_stored_as_a_revision(world: World) -> None:
    await world.apply("policy", AFTER)
    world.cluster.revisions.clear()
    status = world.cluster.policies["policy"]["status"]
    del status["currentRevision"]
    status["rolledOut"] = {"generation": 1, "spec": BEFORE}
    await restarted(world)
    assert await placed_by(world) == "2-3"
    done = world.rolled_out()
    assert (done.generation, done.spec) == (1, CpuPolicySpec.model_validate(BEFORE))
    assert "rolledOut" not in world.status()


async def test_what_release_0_1_wrote_later_counts(world: World) -> None:
    """It came back, finished a roll-out, and dropped the field that it does not know."""
    await world.apply("policy", AFTER)
    for _ in NODES:
        await world.answer()
    ((first, _),) = world.cluster.revisions.items()
    later = AFTER | {"reserved": {"count": 6}}
    body = world.cluster.put_policy("policy", later)
    body["status"] = body["status"] | {"rolledOut": {"generation": 3, "spec": later}}
    del body["status"]["currentRevision"]
    for name in NODES:
        spec = world.cluster.assignments[name]["spec"]
        spec["policy"]["generation"], spec["pools"]["reserved"] = 3, "0-5"
    await restarted(world)
    assert world.rolled_out().generation == 3
    assert first not in world.cluster.revisions
    assert "rolledOut" not in world.status()


async def test_without_the_right_the_status_is_written_all_the_same(world: World) -> None:
    world.cluster.failures = [ForbiddenError("POST", 403, {"message": "cannot create"})]
    world.cluster.revisions.clear()
    body = world.cluster.policies["policy"]
    body["status"] = {"rolledOut": {"generation": 1, "spec": BEFORE}}
    world.operator = world.started()
    world.operator.observe()
    world.cluster.failures *= 1000
    failed = await world.operator.statuses.write({"policy"})
    assert failed == {"policy"}
    world.cluster.failures = []
    await world.settle()
    assert world.rolled_out().generation == 1


async def test_a_policy_that_is_created_again_owns_no_revision_of_the_deleted_one(
    world: World,
) -> None:
    before = world.rolled_out()
    del world.cluster.policies["policy"]
    await world.settle()
    await world.apply("policy", AFTER)
    policy = world.operator.state.policies["policy"]
    assert policy.uid != before.uid
    found = world.operator.state.revisions.newest(policy)
    assert found is None or found.uid == policy.uid


def revision(policy: str, uid: str = "u", generation: int = 1) -> Revision:
    return Revision(policy, uid, generation, SPEC)


def test_names_that_are_cut_do_not_collide() -> None:
    long = "a" * 230 + ".b"
    made = [revision(f"{long}{end}") for end in ("one" * 6, "two" * 6)]
    assert len({one.name for one in made}) == 2
    for one in (*made, revision("a" * 236 + "." + "b" * 16)):
        assert len(one.name) <= LONGEST_NAME
        assert not {"-.", ".-", "--", ".."} & {one.name[i : i + 2] for i in range(len(one.name))}
        assert Revision.decode(one.to_object("n")) == replace(one, stored_as=one.name)


async def test_what_another_release_has_written_in_other_words_stays_as_it_is(
    world: World,
) -> None:
    await world.apply("policy", AFTER)
    ((_, body),) = world.cluster.revisions.items()
    data = body["data"] | {"apiVersion": "numapin.io/v1", "spec": BEFORE | {"priority": 0}}
    digest = blake2b(
        json.dumps(data, sort_keys=True, separators=(",", ":")).encode(), digest_size=8
    ).hexdigest()
    name = f"policy-{digest}"
    theirs = body | {"data": data, "metadata": body["metadata"] | {"name": name}}
    world.cluster.revisions = {name: theirs}
    await restarted(world)
    assert await placed_by(world) == "2-3"
    assert world.cluster.revisions == {name: theirs}
    world.cluster.revisions.clear()
    await world.settle()
    assert world.rolled_out().generation == 1, "written again, in the words of this release"


def view(generation: int, spec: dict[str, Any]) -> PolicyView:
    body = policy_body("policy", spec)
    body["metadata"] |= {"generation": generation, "uid": "u"}
    return PolicyView.decode(body)


def test_what_an_etcd_that_was_restored_has_lost_does_not_count() -> None:
    known = Revisions()
    known.put(revision("policy", generation=4))
    known.put(revision("policy", generation=5))
    wanted = {"reserved": {"count": 2}, "releaseDelay": "5m"}
    same, other = view(5, wanted), view(5, {"reserved": {"count": 3}})
    assert known.newest(same) == revision("policy", generation=5)
    assert known.newest(other) is None, "the generation was used twice"
    assert known.newest(view(4, wanted)) is None
    known.drop(revision("policy", generation=5).name)
    known.start_over()
    assert known.newest(view(6, {})) == revision("policy", generation=4)


@pytest.mark.parametrize("revision_first", [True, False])
def test_an_invalid_policy_keeps_the_delay_of_its_revision(revision_first: bool) -> None:
    state, body = ClusterState(), policy_body("policy")
    state.put_node(node_view())
    stored = Revision("policy", body["metadata"]["uid"], 1, SPEC)
    body["metadata"]["generation"] = 2
    body["spec"] = {"cpuQuota": "Halved"}
    if revision_first:
        state.revisions.put(stored)
    state.put_policy(body)
    state.revisions.put(stored)
    assert state.policies["policy"].problem
    assert picture_of(state, "node-1").release_delay == "5m"
