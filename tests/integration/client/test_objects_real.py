"""Reading and writing objects of a real API server."""

import dataclasses
import secrets
from pathlib import Path

import pytest

from numapin_client import errors
from numapin_client.client import ApiClient, Source, connect
from numapin_client.events import WARNING, Event, Reporter, object_reference, post_event
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import (
    CPU_POLICIES,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    Json,
    Key,
)
from numapin_client.transport.connection import Request
from numapin_lab.controlplane.servers import ControlPlane

VERSION = Request("GET", "/version")


def config_map(namespace: str, name: str, **data: str) -> Json:
    return {"metadata": {"name": name, "namespace": namespace}, "data": data}


async def test_a_status_is_patched_by_itself(client: ApiClient, namespace: str) -> None:
    pod = _pod(namespace)
    await client.create(PODS, pod)
    key = Key.of(pod)
    status = {"conditions": [{"type": "Pinned", "status": "True"}]}
    await client.merge_patch(PODS, key, {"status": status}, subresource="status", field_manager="t")
    patched = await client.merge_patch(
        PODS, key, {"status": {"reason": "Tested"}}, subresource="status", field_manager="t"
    )
    assert patched["status"]["reason"] == "Tested"
    assert patched["status"]["conditions"][0]["type"] == "Pinned"


def _pod(namespace: str) -> Json:
    containers = [{"name": "main", "image": "localhost/pause:1"}]
    return {"metadata": {"name": "pod", "namespace": namespace}, "spec": {"containers": containers}}


async def test_an_invalid_object_names_its_fields(client: ApiClient, namespace: str) -> None:
    pod = _pod(namespace)
    pod["spec"]["containers"][0]["name"] = "Not Valid"
    with pytest.raises(errors.InvalidError) as caught:
        await client.create(PODS, pod)
    assert [cause.field for cause in caught.value.causes] == ["spec.containers[0].name"]


async def test_a_resource_that_is_not_installed_is_not_found(client: ApiClient) -> None:
    absent = dataclasses.replace(CPU_POLICIES, plural="nosuchthings")
    with pytest.raises(errors.NotFoundError):
        await client.list_chunk(Source(absent), limit=0)


async def test_a_refused_token_is_unauthorized(control_plane: ControlPlane, tmp_path: Path) -> None:
    text = control_plane.kubeconfig.read_text()
    assert control_plane.admin_token in text
    foreign = tmp_path / "kubeconfig"
    foreign.write_text(text.replace(control_plane.admin_token, "of-another-cluster"))
    async with connect(kubeconfig_login(str(foreign))) as client:
        with pytest.raises(errors.UnauthorizedError, match=control_plane.server):
            await client.list_chunk(Source(NODES), limit=0)


async def test_a_wrong_authority_is_reported_with_its_file(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    other = tmp_path / "kubeconfig"
    _write_kubeconfig_with_system_trust(control_plane, other)
    async with connect(kubeconfig_login(str(other))) as client:
        with pytest.raises(errors.ConnectionFailedError, match="not trusted") as caught:
            await client.connection.ask(VERSION)
    assert str(other) in str(caught.value)


def _write_kubeconfig_with_system_trust(control_plane: ControlPlane, path: Path) -> None:
    path.write_text(
        f"""
clusters: [{{name: c, cluster: {{server: "{control_plane.server}"}}}}]
users: [{{name: u, user: {{token: t}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""
    )


async def test_a_service_account_has_no_right_beyond_its_roles(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    control_plane.kubectl("create", "serviceaccount", "nobody", "-n", namespace)
    token = control_plane.kubectl("create", "token", "nobody", "-n", namespace).strip()
    limited = tmp_path / "kubeconfig"
    text = control_plane.kubeconfig.read_text()
    limited.write_text(text.replace(control_plane.admin_token, token))
    async with connect(kubeconfig_login(str(limited))) as client:
        with pytest.raises(errors.ForbiddenError, match="nobody") as refused:
            await client.list_chunk(Source(NODES), limit=0)
        assert refused.value.lacks_right
        pod = _pod(namespace)
        for write in (client.create(PODS, pod), client.create(PODS, pod, "eviction")):
            with pytest.raises(errors.ForbiddenError, match="cannot create resource") as refused:
                await write
            assert refused.value.lacks_right


async def test_a_refusal_in_a_namespace_that_is_deleted_is_no_missing_right(
    control_plane: ControlPlane, client: ApiClient
) -> None:
    name = f"ends-{secrets.token_hex(4)}"
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    control_plane.kubectl("delete", "namespace", name, "--wait=false")
    with pytest.raises(errors.ForbiddenError, match="being terminated") as refused:
        await client.create(PODS, _pod(name))
    assert not refused.value.lacks_right


async def test_an_event_with_a_long_note_is_accepted(client: ApiClient, namespace: str) -> None:
    pod = await client.create(PODS, _pod(namespace))
    refused = Event(WARNING, "TopologyAffinityError", "Refuse", "ü" * 600)
    await post_event(client, object_reference(pod), refused, Reporter("numapin.io/t", "me"))
    [event] = (await client.list_chunk(Source(EVENTS, namespace), limit=0)).items
    assert event["regarding"]["uid"] == pod["metadata"]["uid"]
    assert event["note"].endswith("ü…")


async def test_an_event_about_a_node_is_in_the_default_namespace(client: ApiClient) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n" * 253}}
    drifted = Event(WARNING, "Drift", "Repair", "cpuset was 0-7")
    reporter = Reporter("numapin.io/t", "me")
    event = await post_event(client, object_reference(node), drifted, reporter)
    assert event["metadata"]["namespace"] == "default"


async def test_a_lease_is_taken_over_only_from_the_version_seen(
    client: ApiClient, namespace: str
) -> None:
    body = {"metadata": {"name": "leader", "namespace": namespace}, "spec": {"holderIdentity": "a"}}
    first = await client.create(LEASES, body)
    await client.update(LEASES, first | {"spec": {"holderIdentity": "b"}})
    with pytest.raises(errors.ConflictError):
        await client.update(LEASES, first | {"spec": {"holderIdentity": "c"}})
