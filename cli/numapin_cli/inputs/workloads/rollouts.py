"""Which pods of a workload end before its controller creates a new one.

Source: Kubernetes v1.36, pkg/controller: deployment (`rolling.go`, `recreate.go`), statefulset,
daemon (`update.go`), cronjob (`concurrencyPolicy`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from numapin_api.quantity import plural
from numapin_cli.inputs.manifests import Manifest, section
from numapin_cli.inputs.workloads.workload import Workload

_ENDED: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class FirstStep:
    """The cluster when a workload's controller creates the first pod of a roll-out.

    Attributes:
        ended: the pods that have ended before.
        assumed: which ones these are, as a sentence; empty if the workload has no pods.
    """

    ended: Sequence[Manifest] = ()
    assumed: str = ""


def first_step(workload: Workload, pod: Manifest, cluster: Sequence[Manifest]) -> FirstStep:
    """What ends before a new pod of a workload is created.

    Args:
        workload: as people wrote it.
        pod: the new pod, which counts as created on each node by itself.
        cluster: the pods of the cluster.
    """
    has_ended = {one.name for one in cluster if _phase(one) in _ENDED}
    old = [one for one in cluster if workload.controls(one) and one.name not in has_ended]
    if not old:
        return FirstStep()
    ended, how = _ended(workload, pod, old)
    have = "has" if len(old) == 1 else "have"
    many = f"{plural(len(old), 'pod')} of {workload.title} on the nodes that were read"
    return FirstStep(ended, f"{many}: {how.format(have=have)}")


def stay(workload: Workload, old: Sequence[Manifest]) -> Sequence[Manifest]:
    """The pods that a workload still has when its roll-out has ended."""
    spec = section(workload.manifest.content, "spec")
    if workload.manifest.kind == "CronJob":
        return [] if _waits(spec) else old
    if spec.get("paused") is True:
        return old
    if workload.kind == "StatefulSet":
        return [one for one in old if workload.is_below_partition(one)]
    return []


_Gone = tuple[Sequence[Manifest], str]
"""Pods that have ended, and a sentence about all of the workload."""


def _ended(workload: Workload, pod: Manifest, old: Sequence[Manifest]) -> _Gone:
    spec = section(workload.manifest.content, "spec")
    match workload.manifest.kind:
        case "Deployment":
            return _of_deployment(section(spec, "strategy"), old)
        case "StatefulSet":
            same = [one for one in old if one.name == pod.name]
            gone = f"{pod.name} has ended first, others stay" if same else "all stay"
            return same, gone + _partition(workload, pod)
        case "DaemonSet":
            return _of_daemon_set(section(spec, "updateStrategy"), old)
        case "CronJob" if _waits(spec):
            return old, "{have} ended first (concurrencyPolicy)"
        case "Job":
            return old, "{have} ended first, as its pods are replaced by creating the Job again"
        case kind:
            return (), f"all stay (a {kind} replaces no pods)"


def _of_deployment(strategy: Mapping[str, Any], old: Sequence[Manifest]) -> _Gone:
    if strategy.get("type") == "Recreate":
        return old, "{have} ended first (strategy Recreate)"
    if _is_zero(section(strategy, "rollingUpdate").get("maxSurge", 1)):
        return _one_a_node(old), "of each node one has ended first (maxSurge 0)"
    return (), "all stay until a new one is ready (maxSurge is not 0)"


def _of_daemon_set(strategy: Mapping[str, Any], old: Sequence[Manifest]) -> _Gone:
    if _is_zero(section(strategy, "rollingUpdate").get("maxSurge", 0)):
        return old, "{have} ended first, each on its node (maxSurge 0)"
    return (), "all stay until a new one is ready on their node (maxSurge is not 0)"


def _partition(workload: Workload, pod: Manifest) -> str:
    """That a roll-out does not reach the pod; empty if it does."""
    if workload.is_below_partition(pod):
        return "; partition keeps the roll-out from it"
    return ""


def _waits(cron_job: Mapping[str, Any]) -> bool:
    """Whether no run of a CronJob begins beside another one."""
    return cron_job.get("concurrencyPolicy") in {"Forbid", "Replace"}


def _is_zero(number: object) -> bool:
    """Whether a number or a percentage is 0."""
    return str(number).removesuffix("%").strip("0") == ""


def _one_a_node(pods: Sequence[Manifest]) -> Sequence[Manifest]:
    nodes = {str(section(one.content, "spec").get("nodeName")): one for one in pods}
    return list(nodes.values())


def _phase(pod: Manifest) -> str:
    return str(section(pod.content, "status").get("phase"))
