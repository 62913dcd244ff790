"""Release a node by a pod that runs `numapin-enforcer --release` there: no enforcer is needed."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from numapin_api.names import RELEASED
from numapin_cli.inputs.manifests import section
from numapin_cli.live.reader import Reader
from numapin_cli.node_modes.asking import PAUSE_SECONDS, forget
from numapin_cli.node_modes.marks import set_mode
from numapin_client.errors import NotFoundError
from numapin_client.resources import NODE_ASSIGNMENTS, PODS, Json, Key

LABELS: Final = {"app.kubernetes.io/name": "numapin-release"}

_HOST: Final = "/host"
_PATHS: Final = (
    "--cgroupfs=/sys/fs/cgroup",
    "--cri-socket=/run/containerd/containerd.sock",
    "--kubelet-state-dir=/var/lib/kubelet",
    "--state-dir=/var/lib/numapin",
    "--run-dir=/run/numapin",
    "--systemd-socket=/run/dbus/system_bus_socket",
    "--irq-dir=/proc/irq",
    "--workqueue-dir=/sys/devices/virtual/workqueue",
    "--resctrl-dir=/sys/fs/resctrl",
)
"""Flags of the enforcer and the paths of the host, as most nodes have them."""


class ByPod:
    """Releases nodes on which no enforcer runs."""

    def __init__(
        self, reader: Reader, place: tuple[str, str], paths: Sequence[str], timeout_seconds: float
    ) -> None:
        """Release nothing yet.

        Args:
            reader: of the cluster.
            place: the namespace of the pods, and their image.
            paths: flags of the enforcer that name other paths of the host, or more than paths.
            timeout_seconds: how long a pod may take.
        """
        self._reader, self._namespace, self._image = reader, *place
        self._paths, self._timeout_seconds = paths, timeout_seconds

    async def release(self, node: str) -> str:
        """Release one node; returns why it is not released, empty if it is.

        Its NodeAssignment goes last: the next enforcer there would enforce it again.
        """
        has_assignment = await self._give_up_policy(node)
        client = self._reader.client
        body = release_pod(node, self._namespace, self._image, self._paths)
        pod = Key.of(await client.create(PODS, body))
        try:
            why = await self._ended(pod)
        finally:
            with suppress(NotFoundError):
                await client.delete(PODS, pod)
        if not why and has_assignment:
            await forget(self._reader, node)
        return why

    async def _give_up_policy(self, node: str) -> bool:
        """Have no policy select the node any more; whether it has a NodeAssignment."""
        client = self._reader.client
        try:
            await client.get(NODE_ASSIGNMENTS, Key(node))
        except NotFoundError:  # no object, or no CRD any more
            return False
        await set_mode(client, node, RELEASED)
        return True

    async def _ended(self, pod: Key) -> str:
        """Wait until a pod has ended; returns what it has not released."""
        until = time.monotonic() + self._timeout_seconds
        while True:
            try:
                status = section(await self._reader.client.get(PODS, pod), "status")
            except NotFoundError:
                return f"pod {pod} was deleted before it had ended"
            if status.get("phase") == "Succeeded":
                return ""
            if status.get("phase") == "Failed":
                return f"pod {pod} has failed: {why_failed(status)}"
            if time.monotonic() > until:
                return f"pod {pod} has not ended: {why_waiting(status)}"
            await asyncio.sleep(PAUSE_SECONDS)


def release_pod(node: str, namespace: str, image: str, paths: Sequence[str]) -> Json:
    """A pod that releases its node.

    It is bound without a scheduler, so that it also runs on a cordoned node. DAC_OVERRIDE is for
    cgroups inside of containers, SYS_ADMIN for partitions; no AppArmor profile and the type spc_t
    are for D-Bus, the runtime's socket and cgroups. Where there is no AppArmor or SELinux, these
    have no effect.
    """
    container: dict[str, Any] = {
        "name": "release",
        "image": image,
        "command": ["numapin-enforcer", "--release", f"--node-name={node}", *_flags(paths)],
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["DAC_OVERRIDE", "SYS_ADMIN"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "host", "mountPath": _HOST}],
    }
    return {
        "metadata": {
            "generateName": "numapin-release-",
            "namespace": namespace,
            "labels": LABELS,
        },
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "hostPID": True,
            "hostNetwork": True,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {
                "appArmorProfile": {"type": "Unconfined"},
                "seLinuxOptions": {"type": "spc_t"},
            },
            "tolerations": [{"operator": "Exists"}],
            "containers": [container],
            "volumes": [{"name": "host", "hostPath": {"path": "/", "type": "Directory"}}],
        },
    }


def _flags(given: Sequence[str]) -> list[str]:
    """The flags of the enforcer: the usual ones, with those that are given in their place."""
    flags = dict(one.split("=", 1) for one in _PATHS)
    others = []
    for one in given:
        name, _, path = one.partition("=")
        if name in flags:
            flags[name] = path
        else:
            others.append(one)
    return [*(f"{name}={_HOST}{path}" for name, path in flags.items()), *others]


def why_failed(status: Mapping[str, Any]) -> str:
    """What a pod that has failed says; its last lines are its log's."""
    states = (one.get("state") or {} for one in status.get("containerStatuses") or ())
    texts = [str((one.get("terminated") or {}).get("message") or "") for one in states]
    said = next(filter(None, texts), "") or str(status.get("message") or status.get("reason") or "")
    lines = said.strip().splitlines()
    return lines[-1] if lines else "it has said nothing"


def why_waiting(status: Mapping[str, Any]) -> str:
    """What keeps a pod from starting, or that it runs."""
    for one in status.get("containerStatuses") or ():
        waiting = (one.get("state") or {}).get("waiting") or {}
        if waiting:
            return ": ".join(str(waiting[key]) for key in ("reason", "message") if key in waiting)
    return "it runs still" if status.get("phase") == "Running" else "its kubelet has not begun it"
