"""Manifests of the pods of a chaos run."""

from collections.abc import Mapping
from typing import Any, Final

from numapin_campaigns.chaos.plan import End, PlannedPod, PodKind
from numapin_lab.running_lab import pod

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


def manifest(planned: PlannedPod) -> dict[str, Any]:
    """The manifest of a planned pod; its containers end as planned."""
    made = pod(planned.name)
    is_forced = planned.end is End.FORCED
    grace_seconds = STUBBORN_GRACE_SECONDS if is_forced else GRACE_SECONDS
    made["spec"] |= {"terminationGracePeriodSeconds": grace_seconds, **_containers(planned)}
    return made


def resize(planned: PlannedPod, cpu: str) -> dict[str, Any]:
    """What is applied to the subresource `resize` of a planned pod with one container."""
    amounts = _MEMORY | {"cpu": cpu}
    container = {"name": "main", "resources": {"requests": amounts, "limits": amounts}}
    return pod(planned.name) | {"spec": {"containers": [container]}}


def resident(name: str, requests: Mapping[str, str]) -> dict[str, Any]:
    """A busy pod that runs for the whole run: BestEffort, or Burstable with these requests."""
    made = pod(name)
    main = _container("main", _busy(None, stubborn=False)) | {"resources": _requests(requests)}
    made["spec"] |= {"restartPolicy": "Always", "containers": [main]}
    return made


def _containers(planned: PlannedPod) -> dict[str, Any]:
    seconds = planned.life_seconds if planned.end is End.BY_ITSELF else None
    stubborn = planned.end is End.FORCED
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
    return made[planned.kind]


def _container(name: str, script: str) -> dict[str, Any]:
    (container,) = pod("", ("sh", "-c", script))["spec"]["containers"]
    return {**container, "name": name}


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
