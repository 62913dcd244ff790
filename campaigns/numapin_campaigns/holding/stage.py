"""The cluster of a run: API server, scheduler and operator are real, nodes are played."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

from numapin_api import names
from numapin_api.forms.spec import read_spec
from numapin_campaigns.holding.outcome import Way
from numapin_campaigns.holding.workload import CPUS, NAMESPACE, RULES, Plan
from numapin_client.client import ApiClient, Source, connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import (
    CPU_POLICIES,
    NAMESPACES,
    NODE_ASSIGNMENTS,
    NODE_RESOURCE_TOPOLOGIES,
    NODES,
    PODS,
    Json,
    Key,
)
from numapin_client.transport.connection import Request
from numapin_lab.controlplane.controllers import scheduler
from numapin_lab.controlplane.installation import install
from numapin_lab.controlplane.service_accounts import ServiceAccount, log_in
from numapin_lab.controlplane.topology_scheduler import CRD, TopologyScheduler
from numapin_lab.errors import LabError
from numapin_lab.installed.manifests import OVERLAY
from numapin_lab.played.control_plane import LargePlane, large_plane
from numapin_lab.played.enforcers import node_name, played
from numapin_lab.played.machines import TWO_NUMA_NODES
from numapin_lab.played.operator_process import OperatorRun
from numapin_lab.processes.daemons import stop
from numapin_lab.processes.ports import choose

COMPONENTS: Final = OVERLAY.parents[1] / "components"
READY_SECONDS: Final = 120
STOP_SECONDS: Final = 2.0
AGAIN_SECONDS: Final = 0.3
TYPICAL: Final[Json] = {"releaseDelay": "0s"}
OF_POLICY: Final[dict[Way, Json]] = {
    Way.HOLD: {"onUnsatisfiable": "Hold"},
    Way.SHARE: {"onUnsatisfiable": "Share"},
    Way.PLUG_IN: {"onUnsatisfiable": "Share", "publish": {"nodeResourceTopology": "Zones"}},
}
OF_OPERATOR: Final = {Way.PLUG_IN: ("--publish-topologies",)}


@asynccontextmanager
async def stage(way: Way, plan: Plan, folder: Path) -> AsyncIterator[ApiClient]:
    """Start everything; yields the administrator's client.

    Raises:
        LabError: the nodes were not ready in time.
    """
    async with AsyncExitStack() as stack:
        plane = large_plane(folder / "plane", "kube-scheduler")
        stack.callback(plane.stop)
        await asyncio.to_thread(plane.start)
        if way is not Way.KUBELET:
            await asyncio.to_thread(_install, plane, way)
        api = await stack.enter_async_context(connect(kubeconfig_login(str(plane.kubeconfig))))
        for number in range(plan.nodes):
            await _add_node(api, node_name(number))
            if way is Way.PLUG_IN:
                await _add_idle_pod(api, node_name(number))
        if way is not Way.KUBELET:
            options = (f"--nodes={plan.nodes}", "--end-containers")
            enforcers = played(plane.kubeconfig, folder / "notes", [TWO_NUMA_NODES], *options)
            stack.enter_context(enforcers)
            account = ServiceAccount(names.NAMESPACE, names.OPERATOR_SERVICE_ACCOUNT)
            login = await asyncio.to_thread(log_in, plane, account, folder / "login")
            more = OF_OPERATOR.get(way, ())
            stack.callback(OperatorRun(login, folder / "operator.log", None, *more).stop)
            await _until_ready(api, way, plan.nodes)
        await asyncio.to_thread(_bind, plane, way, stack)
        yield api


def _bind(plane: LargePlane, way: Way, stack: AsyncExitStack) -> None:
    """Start the scheduler."""
    if way is Way.PLUG_IN:
        plug_in = TopologyScheduler(plane)
        stack.callback(plug_in.stop)
        plug_in.start()
        return
    binder = scheduler(plane, choose(1)[0])
    binder.start()
    pid = binder.daemon.pid()
    assert pid is not None
    stack.callback(stop, pid, STOP_SECONDS)


def _install(plane: LargePlane, way: Way) -> None:
    install(plane, OVERLAY)
    files: list[Path] = []
    if way is Way.HOLD:
        files = sorted((COMPONENTS / "holding").glob("[!k]*.yaml"))
    elif way is Way.PLUG_IN:
        files = [CRD, COMPONENTS / "node-resource-topology" / "rbac.yaml"]
    if files:
        named = [f"--filename={one}" for one in files]
        plane.kubectl("apply", "--server-side", "--force-conflicts", *named)


async def _add_node(api: ApiClient, name: str) -> None:
    await api.create(NODES, {"metadata": {"name": name}})
    amounts = {"cpu": str(CPUS), "memory": "64Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status: Json = {
        "capacity": amounts,
        "allocatable": amounts | {"cpu": str(CPUS - 1)},
        "conditions": [ready],
    }
    await api.merge_patch(NODES, Key(name), {"status": status}, subresource="status")
    await api.merge_patch(NODES, Key(name), {"spec": {"taints": None}})


async def _add_idle_pod(api: ApiClient, node: str) -> None:
    """A pod that always runs, as real nodes have: the plug-in takes in nothing of others."""
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "none"}]}
    await api.create(
        PODS, {"metadata": {"name": f"idle-{node}", "namespace": NAMESPACE}, "spec": spec}
    )
    running = {"status": {"phase": "Running"}}
    await api.merge_patch(PODS, Key(f"idle-{node}", NAMESPACE), running, subresource="status")


async def _until_ready(api: ApiClient, way: Way, nodes: int) -> None:
    """Wait until each node has CPUs to give away, and new pods get their gates."""
    spec = RULES | TYPICAL | OF_POLICY[way]
    try:
        async with asyncio.timeout(READY_SECONDS):
            await api.create(CPU_POLICIES, {"metadata": {"name": "all"}, "spec": spec})
            if way is Way.HOLD:
                labels = {"metadata": {"labels": {names.HOLD_LABEL: names.HOLD_ENABLED}}}
                await api.merge_patch(NAMESPACES, Key(NAMESPACE), labels)
                await _until(partial(_gates, api))
            await _until(partial(_has_planned, api, nodes))
            if way is Way.PLUG_IN:
                await _until(partial(_has_published, api, nodes))
    except TimeoutError as error:
        raise LabError("the nodes were not planned in time") from error


async def _until(check: Callable[[], Awaitable[bool]]) -> None:
    while True:
        if await check():
            return
        await asyncio.sleep(AGAIN_SECONDS)


async def _has_planned(api: ApiClient, nodes: int) -> bool:
    listed = await api.list_chunk(Source(NODE_ASSIGNMENTS), limit=0)
    return sum("pools" in read_spec(one).wire for one in listed.items) == nodes


async def _has_published(api: ApiClient, nodes: int) -> bool:
    return len((await api.list_chunk(Source(NODE_RESOURCE_TOPOLOGIES), limit=0)).items) == nodes


async def _gates(api: ApiClient) -> bool:
    """Whether the API server sets the gate of a new pod, which takes a moment after the policy."""
    probe: Json = {"metadata": {"name": "probe", "namespace": NAMESPACE}}
    body = probe | {"spec": {"containers": [{"name": "main", "image": "none"}]}}
    made = await api.create(PODS, body)
    await end_pod(api, "probe")
    return bool(made["spec"].get("schedulingGates"))


async def end_pod(api: ApiClient, name: str) -> None:
    """Delete a pod at once, as its kubelet does when its containers have ended."""
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    path = PODS.path(Key(name, NAMESPACE))
    await api.connection.ask(Request("DELETE", path, body=options))
