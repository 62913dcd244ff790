"""Workloads are told their CPUs by an annotation of their pods, on a real API server.

The operator may change that annotation, and nothing else of a pod.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from numapin_api import names
from numapin_client.client import ApiClient, connect
from numapin_client.errors import ForbiddenError, InvalidError
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import PODS, Json, Key
from numapin_lab.processes.ports import choose
from numapin_operator.cluster import PodEvent
from support.real.operators.operator_process import OperatorProcess, probe, until
from support.real.operators.operator_scenes import holds, plan, without_patching_pods
from support.real.operators.operator_world import RealWorld


async def kubectl(world: RealWorld, *arguments: str) -> str:
    return await asyncio.to_thread(world.plane.kubectl, *arguments)


@asynccontextmanager
async def as_operator(world: RealWorld) -> AsyncIterator[ApiClient]:
    """A client with the rights of the operator."""
    async with connect(kubeconfig_login(str(world.operator_kubeconfig))) as client:
        yield client


@pytest.fixture
async def operator(world: RealWorld, tmp_path: Path) -> AsyncIterator[OperatorProcess]:
    """An operator that annotates pods as soon as it may."""
    process = OperatorProcess(world.operator_kubeconfig, tmp_path, hasty=True)
    try:
        yield process
    finally:
        assert await process.stop() == 0, process.log.read_text()[-4000:]


def key_of(pod: PodEvent) -> Key:
    return Key(pod.pod, pod.namespace)


async def annotated(world: RealWorld, pod: PodEvent) -> Json:
    """What a pod is told of its container; empty if it has no annotation."""
    found = await world.admin.get(PODS, key_of(pod))
    text = (found["metadata"].get("annotations") or {}).get(names.CPUS_ANNOTATION)
    said: Json = json.loads(text)["containers"]["main"] if text is not None else {}
    return said


async def annotate(client: ApiClient, pod: PodEvent, name: str, text: str | None) -> None:
    await client.merge_patch(PODS, key_of(pod), {"metadata": {"annotations": {name: text}}})


async def says(world: RealWorld, pod: PodEvent, wanted: Json) -> bool:
    return await annotated(world, pod) == wanted


async def grant(world: RealWorld, pod: PodEvent, cpu: str) -> None:
    """The kubelet runs a pod and has granted it so much."""
    container = {
        "name": "main",
        "image": "busybox",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
    }
    container["allocatedResources"] = {"cpu": cpu, "memory": "64Mi"}
    status = {"phase": "Running", "containerStatuses": [container]}
    await world.admin.merge_patch(PODS, key_of(pod), {"status": status}, subresource="status")


async def test_a_pod_is_told_its_cpus_whatever_its_tenant_writes(
    world: RealWorld, operator: OperatorProcess
) -> None:
    async with world.component("cpu-annotation"):
        await operator.start("--annotate-pods")
        node = await plan(world)
        pod, shares = await world.add_pod(node, "a"), await world.add_pod(node, "b", "500m")
        wanted = {"cpus": "2-3", "numaNodes": "0"}
        await until(lambda: says(world, pod, wanted), operator.log)
        for text in ('{"version":1,"containers":{"main":{"cpus":"0-7"}}}', None):
            await annotate(world.admin, pod, names.CPUS_ANNOTATION, text)
            await until(lambda: says(world, pod, wanted), operator.log)
        await annotate(world.admin, shares, names.CPUS_ANNOTATION, '{"containers":{"main":{}}}')
        await annotate(
            world.admin, shares, names.CPUS_ANNOTATION, '{"containers":{"main":{"x":1}}}'
        )
        await until(lambda: says(world, shares, {}), operator.log)
        managed = (await world.admin.get(PODS, key_of(pod)))["metadata"]["managedFields"]
        assert names.OPERATOR_FIELD_MANAGER in {one["manager"] for one in managed}


async def test_a_container_that_shrinks_is_told_before_its_cpus_leave(
    world: RealWorld, operator: OperatorProcess
) -> None:
    async with world.component("cpu-annotation"):
        await operator.start("--annotate-pods")
        node = await plan(world)
        pod = await world.add_pod(node, "a", "3")
        await grant(world, pod, "3")
        await until(lambda: says(world, pod, {"cpus": "2-4", "numaNodes": "0"}), operator.log)
        await world.enforce(node, pod.uid)
        await grant(world, pod, "1")
        leaving: list[Json] = []

        async def has_shrunk() -> bool:
            before, after = await annotated(world, pod), await world.held(node)
            if "leaving" in before and before not in leaving:
                leaving.append(before)
            await world.enforce(node, pod.uid)
            return after == {"a": "2"}

        await until(has_shrunk, operator.log)
        assert {one["cpus"] for one in leaving} == {"2-4"}
        assert [one["leaving"]["cpus"] for one in leaving if "at" in one["leaving"]] == ["3-4"]
        await until(lambda: says(world, pod, {"cpus": "2", "numaNodes": "0"}), operator.log)


OWN_PATCHES: dict[str, Json] = {
    "label": {"metadata": {"labels": {"mine": "yes"}}},
    "finalizer": {"metadata": {"finalizers": ["numapin.io/mine"]}},
    "owner": {
        "metadata": {
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "theirs", "uid": "0-theirs"}
            ]
        }
    },
    "another annotation": {"metadata": {"annotations": {"numapin.io/other": "yes"}}},
    "the annotation of others": {"metadata": {"annotations": {"theirs": "changed"}}},
    "removes that of others": {"metadata": {"annotations": {"theirs": None}}},
    "spec": {"spec": {"activeDeadlineSeconds": 5}},
}


async def test_the_operator_may_change_nothing_else_of_a_pod(world: RealWorld) -> None:
    node = (await world.add_node("node")).name
    pod = await world.add_pod(node, "a")
    await annotate(world.admin, pod, "theirs", "kept")

    async def refused(client: ApiClient, patch: Json) -> bool:
        try:
            await client.merge_patch(PODS, key_of(pod), patch)
        except ForbiddenError as error:
            return names.OPERATOR_SERVICE_ACCOUNT in str(error) and not error.lacks_right
        return False

    async with world.component("cpu-annotation"), as_operator(world) as client:
        tries = count()  # what a pod says already is changed by nobody

        async def in_force() -> bool:
            return await refused(client, {"metadata": {"labels": {"try": str(next(tries))}}})

        await until(in_force)
        before = await world.admin.get(PODS, key_of(pod))
        for what, patch in OWN_PATCHES.items():
            assert await refused(client, patch), what
        after = await world.admin.get(PODS, key_of(pod))
        assert before == after
        for text in ("one", "two", None):
            await world.cluster.annotate(key_of(pod), pod.uid, text)
            found = (await world.admin.get(PODS, key_of(pod)))["metadata"]["annotations"]
            assert found.get(names.CPUS_ANNOTATION) == text
            assert found["theirs"] == "kept"
        with pytest.raises(InvalidError):
            await world.cluster.annotate(key_of(pod), "00000000-another-pod", "no")
        async with world.component("eviction"):
            await world.cluster.evict(pod.namespace, pod.pod, pod.uid)
        assert await world.pod_is_deleted(pod)


async def test_without_the_right_it_says_so_once_and_all_else_goes_on(
    world: RealWorld, operator: OperatorProcess
) -> None:
    (port,) = choose(1)
    page = f"http://127.0.0.1:{port}/readyz"

    async def named() -> Any:
        return "right to patch pods" in (await probe(page))[1]

    async with without_patching_pods(world):
        await operator.start("--annotate-pods", f"--health-address=127.0.0.1:{port}")
        node = await plan(world)
        pod = await world.add_pod(node, "a")
        await until(named, operator.log)
        other = await world.add_pod(node, "b")
        await until(lambda: holds(world, node, {"a": "2-3", "b": "4-5"}), operator.log)
        assert await annotated(world, pod) == {}
    async with world.component("cpu-annotation"):
        await until(lambda: says(world, other, {"cpus": "4-5", "numaNodes": "0"}), operator.log)
        await until(lambda: says(world, pod, {"cpus": "2-3", "numaNodes": "0"}), operator.log)
        assert operator.log.read_text().count("manifests/components/cpu-annotation") == 1
