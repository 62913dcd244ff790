"""What every `Cluster` must do; the fake and the real API server pass the same tests."""

from dataclasses import replace
from typing import Any, Protocol

import pytest

from numapin_api import names
from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import NodeAssignmentSpec, Refusal
from numapin_api.status.policy import CpuPolicyStatus
from numapin_client.errors import (
    DISRUPTION_BUDGET,
    AlreadyExistsError,
    ConflictError,
    NotFoundError,
    TooManyRequestsError,
)
from numapin_client.resources import NODE_REPORTS, NODE_TOPOLOGIES, Key
from numapin_operator.cluster import Cluster, PodEvent
from numapin_operator.noderesourcetopology.owner import foreign_writer
from numapin_operator.observe.assignments.printing import told_of
from numapin_operator.observe.records import NodeView
from numapin_operator.observe.revisions import Revision
from support.values.operator import enforcer_status

WAITING = NodeAssignmentSpec.from_wire({"policy": {"name": "p", "generation": 1}})
PLANNED = NodeAssignmentSpec.from_wire(
    {
        "policy": {"name": "p", "generation": 2},
        "pools": {"reserved": "0", "shared": "0-2"},
        "containers": [
            {
                "podUID": "uid-a",
                "namespace": "default",
                "pod": "a",
                "container": "main",
                "cpus": "3",
                "mems": "0",
                "exclusive": True,
            }
        ],
    }
)
FOREIGN_OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "theirs", "uid": "0-theirs"}
RELEASED = NodeAssignmentSpec(mode="None")
REFUSAL = Refusal.from_wire(
    {
        "podUID": "uid-b",
        "namespace": "default",
        "pod": "b",
        "reason": "NotEnoughCPUs",
        "message": "wanted 4 CPUs, 1 is free",
    }
)


class World(Protocol):
    """The users, kubelets and enforcers of a cluster in a test."""

    cluster: Cluster

    async def add_node(self) -> NodeView:
        """A new node."""

    async def put_policy(self, spec: dict[str, Any]) -> str:
        """A new policy; its name."""

    async def report(self, node: str, status: dict[str, Any]) -> None:
        """An enforcer writes its status."""

    async def add_owner(self, node: str) -> None:
        """A user adds an owner of a node's assignment."""

    async def add_pod(self, node: str) -> PodEvent:
        """A new pod, and an Event about it."""

    async def block_evictions(self, pod: PodEvent) -> None:
        """A disruption budget that allows no eviction covers that pod, which runs."""

    async def pod_is_deleted(self, pod: PodEvent) -> bool:
        """Whether that pod is gone or being deleted."""

    async def event_notes(self, pod: PodEvent) -> list[str]:
        """The notes of the Events on that pod."""


class ClusterContract:
    """The tests; a subclass has a fixture `world`."""

    async def test_what_is_created_can_be_read(self, world: World) -> None:
        node = await world.add_node()
        made = await world.cluster.create_assignment(node, WAITING)
        assert (made.spec, made.owner_uid, made.generation) == (WAITING, None, 1)
        assert await world.cluster.read_assignment(node.name) == made

    async def test_what_has_not_changed_is_not_decoded_again(self, world: World) -> None:
        same, edited = await world.add_node(), await world.add_node()
        known = {
            node.name: await world.cluster.create_assignment(node, WAITING)
            for node in (same, edited)
        }
        await world.cluster.replace_spec(known[edited.name], edited, PLANNED)
        assert await world.cluster.read_assignment(same.name, known[same.name]) is known[same.name]
        again = await world.cluster.read_assignment(edited.name, known[edited.name])
        assert again is not None
        assert again.spec == PLANNED

    async def test_what_is_not_there_reads_as_none(self, world: World) -> None:
        assert await world.cluster.read_assignment("nowhere") is None

    async def test_resource_topologies_keep_labels_of_others(self, world: World) -> None:
        node, cluster = await world.add_node(), world.cluster
        assert await cluster.read_resource_topology(node.name) is None
        mark = {names.MANAGED_BY_LABEL: names.MANAGED_BY}
        ours: dict[str, Any] = {"name": node.name, "labels": mark}
        zone = {"name": "node-0", "type": "Node"}
        made = await cluster.create_resource_topology({"metadata": ours, "zones": [zone]})
        with pytest.raises(AlreadyExistsError):
            await cluster.create_resource_topology({"metadata": ours, "zones": []})
        same = {key: made["metadata"][key] for key in ("uid", "resourceVersion")}
        labels = {"metadata": ours | same | {"labels": {"a": "b"}}}
        marked = await cluster.patch_resource_topology(labels)
        with pytest.raises(ConflictError):
            await cluster.patch_resource_topology(labels)
        now = {"resourceVersion": marked["metadata"]["resourceVersion"]}
        body = {"metadata": ours | same | now, "zones": [zone, zone | {"name": "node-1"}]}
        after = await cluster.patch_resource_topology(body)
        assert await cluster.read_resource_topology(node.name) == after
        assert len(after["zones"]) == 2
        assert after["metadata"]["labels"] == mark | {"a": "b"}
        assert foreign_writer(after) is None
        (listed,) = [
            one for one in await cluster.list_resource_topologies() if one["name"] == node.name
        ]
        version = after["metadata"]["resourceVersion"]
        assert (listed["uid"], listed["resourceVersion"]) == (same["uid"], version)
        with pytest.raises(ConflictError):
            await cluster.delete_resource_topology(node.name, same["uid"], now["resourceVersion"])
        await cluster.delete_resource_topology(node.name, same["uid"], version)
        assert await cluster.read_resource_topology(node.name) is None

    async def test_nodes_and_pods_are_read_one_by_one(self, world: World) -> None:
        node = await world.add_node()
        made = await world.add_pod(node.name)
        read = await world.cluster.read_node(node.name)
        assert read is not None
        assert (read.name, read.uid) == (node.name, node.uid)
        pod = await world.cluster.read_pod(Key(made.pod, made.namespace))
        assert pod is not None
        assert (pod.uid, pod.node, pod.terminal) == (made.uid, node.name, False)
        assert await world.cluster.read_node("nowhere") is None
        assert await world.cluster.read_pod(Key("no-such-pod", "default")) is None

    async def test_creating_twice_is_refused(self, world: World) -> None:
        node = await world.add_node()
        await world.cluster.create_assignment(node, WAITING)
        with pytest.raises(AlreadyExistsError):
            await world.cluster.create_assignment(node, PLANNED)
        assert await self.spec(world, node) == WAITING

    async def test_a_spec_is_replaced_as_a_whole(self, world: World) -> None:
        node = await world.add_node()
        first = await world.cluster.create_assignment(node, WAITING)
        second = await world.cluster.replace_spec(first, node, PLANNED)
        assert (second.spec, second.generation) == (PLANNED, 2)
        third = await world.cluster.replace_spec(second, node, RELEASED)
        assert (third.spec, third.generation) == (RELEASED, 3)
        assert third.spec.policy is None
        assert await self.spec(world, node) == RELEASED

    async def test_a_stale_replacement_is_refused(self, world: World) -> None:
        node = await world.add_node()
        first = await world.cluster.create_assignment(node, WAITING)
        await world.cluster.replace_spec(first, node, PLANNED)
        with pytest.raises(ConflictError):
            await world.cluster.replace_spec(first, node, RELEASED)
        assert await self.spec(world, node) == PLANNED

    async def test_a_report_in_between_makes_a_write_stale(self, world: World) -> None:
        node = await world.add_node()
        first = await world.cluster.create_assignment(node, WAITING)
        await world.report(node.name, enforcer_status(1))
        with pytest.raises(ConflictError):
            await world.cluster.replace_spec(first, node, PLANNED)

    async def test_a_replacement_keeps_the_status(self, world: World) -> None:
        node = await world.add_node()
        await world.cluster.create_assignment(node, WAITING)
        await world.report(node.name, enforcer_status(1, running=["uid-a"]))
        before = await world.cluster.read_assignment(node.name)
        assert before is not None
        after = await world.cluster.replace_spec(before, node, PLANNED)
        assert after.status == before.status
        assert after.status.running == ("uid-a",)

    async def test_lines_say_what_entries_say(self, world: World) -> None:
        node, create = await world.add_node(), world.cluster.create_assignment
        first = await create(node, PLANNED, as_lines=True)
        assert (first.spec, first.form.has_lines, first.form.since) == (PLANNED, True, (1,))
        read = await world.cluster.read_assignment(node.name)
        assert read is not None
        assert (read.spec, read.form.lines) == (PLANNED, first.form.lines)

    async def test_a_line_that_stays_keeps_its_generation(self, world: World) -> None:
        node, cluster = await world.add_node(), world.cluster
        first = await cluster.create_assignment(node, PLANNED, as_lines=True)
        [one] = PLANNED.containers
        both = replace(PLANNED, containers=(one, replace(one, container="two", cpus=CpuSet([2]))))
        second = await cluster.replace_spec(first, node, both, as_lines=True)
        assert (second.generation, second.form.since) == (2, (1, 2))
        moved = replace(both, containers=(replace(one, cpus=CpuSet([1])), both.containers[1]))
        third = await cluster.replace_spec(second, node, moved, as_lines=True)
        assert third.form.since == (3, 2)

    async def test_an_assignment_changes_its_form_and_nothing_else(self, world: World) -> None:
        node, cluster = await world.add_node(), world.cluster
        first = await cluster.create_assignment(node, PLANNED)
        second = await cluster.replace_spec(first, node, PLANNED, as_lines=True)
        third = await cluster.replace_spec(second, node, PLANNED)
        assert first.spec == second.spec == third.spec
        forms = (first.form.has_lines, second.form.has_lines, third.form.has_lines)
        assert forms == (False, True, False)

    async def test_the_status_tells_what_lines_do_not(self, world: World) -> None:
        node, cluster = await world.add_node(), world.cluster
        first = await cluster.create_assignment(node, PLANNED, as_lines=True)
        told = told_of(replace(PLANNED, refused=(REFUSAL,), refused_omitted=2))
        assert told["refused"] == 3
        second = await cluster.tell(first, told)
        assert (second.spec.refused, second.spec.refused_omitted) == ((REFUSAL,), 2)
        assert (second.generation, second.form.told) == (first.generation, told)
        with pytest.raises(ConflictError):
            await cluster.tell(first, {"refused": None})
        third = await cluster.tell(second, dict.fromkeys(told))
        assert (third.spec, third.form.told) == (PLANNED, {})

    async def test_objects_of_enforcers_come_and_go(self, world: World) -> None:
        node, cluster = await world.add_node(), world.cluster
        for kind in (NODE_REPORTS, NODE_TOPOLOGIES):
            await cluster.create_node_object(kind, node.name)
            with pytest.raises(AlreadyExistsError):
                await cluster.create_node_object(kind, node.name)
            await cluster.delete_node_object(kind, node.name)
            with pytest.raises(NotFoundError):
                await cluster.delete_node_object(kind, node.name)

    async def test_a_replacement_keeps_the_owners_that_others_added(self, world: World) -> None:
        node = await world.add_node()
        await world.cluster.create_assignment(node, WAITING)
        await world.add_owner(node.name)
        before = await world.cluster.read_assignment(node.name)
        assert before is not None
        after = await world.cluster.replace_spec(before, node, PLANNED)
        assert after.owner_uid is None
        assert [one["kind"] for one in after.metadata["ownerReferences"]] == ["ConfigMap"]

    async def test_versions_grow_with_writes(self, world: World) -> None:
        before = await world.cluster.read_policies_version()
        node = await world.add_node()
        made = await world.cluster.create_assignment(node, WAITING)
        assert made.version >= before
        assert await world.cluster.read_policies_version() >= made.version

    async def test_replacing_what_is_gone_is_refused(self, world: World) -> None:
        node = await world.add_node()
        first = await world.cluster.create_assignment(node, WAITING)
        await world.cluster.delete_assignment(first)
        with pytest.raises((NotFoundError, ConflictError)):
            await world.cluster.replace_spec(first, node, PLANNED)
        assert await world.cluster.read_assignment(node.name) is None

    async def test_a_stale_deletion_is_refused(self, world: World) -> None:
        node = await world.add_node()
        first = await world.cluster.create_assignment(node, WAITING)
        second = await world.cluster.replace_spec(first, node, PLANNED)
        with pytest.raises(ConflictError):
            await world.cluster.delete_assignment(first)
        await world.cluster.delete_assignment(second)
        assert await world.cluster.read_assignment(node.name) is None

    async def test_a_policys_status_is_replaced(self, world: World) -> None:
        name = await world.put_policy({"reserved": {"count": 1}})
        policy = {one.name: one for one in (await world.cluster.list_policies()).states}[name]
        status = CpuPolicyStatus(observed_generation=1, nodes_selected=3)
        after = await world.cluster.replace_policy_status(policy, status)
        assert (after.status, after.spec) == (status, policy.spec)
        with pytest.raises(ConflictError):
            await world.cluster.replace_policy_status(policy, CpuPolicyStatus())
        emptied = await world.cluster.replace_policy_status(after, CpuPolicyStatus())
        assert emptied.status == CpuPolicyStatus()

    async def test_a_revision_is_stored_once(self, world: World) -> None:
        name = await world.put_policy({"reserved": {"count": 1}})
        policy = {one.name: one for one in (await world.cluster.list_policies()).states}[name]
        revision = Revision.of(policy)
        await world.cluster.create_revision(revision)
        with pytest.raises(AlreadyExistsError):
            await world.cluster.create_revision(revision)
        await world.cluster.delete_revision(revision.name)
        with pytest.raises(NotFoundError):
            await world.cluster.delete_revision(revision.name)

    async def test_an_event_about_a_pod_is_posted(self, world: World) -> None:
        node = await world.add_node()
        event = await world.add_pod(node.name)
        await world.cluster.post_event(event)
        assert await world.event_notes(event) == [event.note]

    async def test_an_event_that_is_posted_once_for_each_reason(self, world: World) -> None:
        node = await world.add_node()
        first = replace(await world.add_pod(node.name), is_once=True)
        for event in (first, replace(first, note="with other numbers")):
            await world.cluster.post_event(event)
        assert await world.event_notes(first) == [first.note]
        await world.cluster.post_event(replace(first, reason="Another", note="of another"))
        assert {*await world.event_notes(first)} == {first.note, "of another"}

    async def test_a_pod_is_evicted_if_it_is_still_that_pod(self, world: World) -> None:
        node = await world.add_node()
        pod = await world.add_pod(node.name)
        with pytest.raises(ConflictError):
            await world.cluster.evict(pod.namespace, pod.pod, "00000000-another-pod")
        assert not await world.pod_is_deleted(pod)
        await world.cluster.evict(pod.namespace, pod.pod, pod.uid)
        assert await world.pod_is_deleted(pod)

    async def test_a_disruption_budget_refuses_an_eviction(self, world: World) -> None:
        """With the status of an overload, which it is not."""
        node = await world.add_node()
        pod = await world.add_pod(node.name)
        await world.block_evictions(pod)
        with pytest.raises(TooManyRequestsError) as refused:
            await world.cluster.evict(pod.namespace, pod.pod, pod.uid)
        assert not refused.value.is_overload
        assert [cause.reason for cause in refused.value.causes] == [DISRUPTION_BUDGET]
        assert not await world.pod_is_deleted(pod)

    async def test_evicting_what_is_gone_is_refused(self, world: World) -> None:
        with pytest.raises(NotFoundError):
            await world.cluster.evict("default", "no-such-pod", "00000000-no-pod")

    async def spec(self, world: World, node: NodeView) -> NodeAssignmentSpec | None:
        found = await world.cluster.read_assignment(node.name)
        return found.spec if found else None
