"""Manifests of the pods of a chaos run."""

from collections.abc import Mapping
from typing import Any, Final

from numapin_campaigns.chaos.plan import End, PlannedPod, PodKind
from numapin_lab.node.image import IMAGE

LABEL: Final = "numapin-chaos"
GRACE_SECONDS: Final = 2
STUBBORN_GRACE_SECONDS: Final = 30

_MEMORY: Final = {"memory": "16Mi"}
_WHOLE: Final = {"cpu": "1"} | _MEMORY
_PART: Final = {"cpu": "20m"} | _MEMORY
# Each probe is a new process in the container's cgroup.
_PROBED: Final = {
    "readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 1, "timeoutSeconds": 10}
}
_EARLY: Final = "sleep 0.2"


def manifest(pod: PlannedPod) -> dict[str, Any]:
    """The manifest of a planned pod; its containers end as planned."""
    forced = pod.end is End.FORCED
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod.name, "namespace": "default", "labels": {LABEL: "true"}},
        "spec": {
            "terminationGracePeriodSeconds": STUBBORN_GRACE_SECONDS if forced else GRACE_SECONDS,
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
        }
        | _containers(pod),
    }


def resize(pod: PlannedPod, cpu: str) -> dict[str, Any]:
    """What is applied to the subresource `resize` of a planned pod with one container."""
    amounts = _MEMORY | {"cpu": cpu}
    container = {"name": "main", "resources": {"requests": amounts, "limits": amounts}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod.name, "namespace": "default"},
        "spec": {"containers": [container]},
    }


def resident(name: str, requests: Mapping[str, str]) -> dict[str, Any]:
    """A busy pod that runs for the whole run: BestEffort, or Burstable with these requests."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "restartPolicy": "Always",
            "automountServiceAccountToken": False,
            "containers": [
                _container("main", _busy(None, stubborn=False)) | {"resources": _requests(requests)}
            ],
        },
    }


def _containers(pod: PlannedPod) -> dict[str, Any]:
    seconds = pod.life_seconds if pod.end is End.BY_ITSELF else None
    stubborn = pod.end is End.FORCED
    idle, busy = _idle(seconds, stubborn=stubborn), _busy(seconds, stubborn=stubborn)
    main, side = _container("main", busy), _container("side", idle)
    exclusive = _limited("main", idle, _WHOLE)
    made: dict[PodKind, dict[str, Any]] = {
        PodKind.EXCLUSIVE: {"containers": [_limited("main", busy, _WHOLE)]},
        PodKind.EXCLUSIVE_AFTER_INIT: {
            "initContainers": [_limited("first", _EARLY, _WHOLE)],
            "containers": [exclusive],
        },
        PodKind.EXCLUSIVE_WITH_SIDECAR: {
            "containers": [exclusive | _PROBED, _limited("side", idle, _PART)]
        },
        PodKind.FRACTION: {"containers": [_limited("main", busy, _PART)]},
        PodKind.BURSTABLE: {"containers": [main | {"resources": _requests(_MEMORY)}]},
        PodKind.BEST_EFFORT: {"containers": [main]},
        PodKind.SEVERAL: {
            "initContainers": [_container("first", _EARLY)],
            "containers": [main | _PROBED, side],
        },
    }
    return made[pod.kind]


def _container(name: str, script: str) -> dict[str, Any]:
    command = ["sh", "-c", script]
    return {"name": name, "image": IMAGE, "imagePullPolicy": "Never", "command": command}


def _limited(name: str, script: str, amounts: Mapping[str, str]) -> dict[str, Any]:
    resources = {"requests": dict(amounts), "limits": dict(amounts)}
    return _container(name, script) | {"resources": resources}


def _requests(requests: Mapping[str, str]) -> dict[str, Any]:
    return {"requests": dict(requests)}


def _idle(seconds: float | None, *, stubborn: bool) -> str:
    """A script that sleeps for so long, or until SIGTERM, or (`stubborn`) until SIGKILL."""
    if stubborn:
        return "trap '' TERM; while true; do sleep 1; done"
    return f"trap 'exit 0' TERM; sleep {1000000 if seconds is None else seconds} & wait $!"


def _busy(seconds: float | None, *, stubborn: bool) -> str:
    """The same script with a second process that never sleeps."""
    return f"(while true; do :; done) & {_idle(seconds, stubborn=stubborn)}"
