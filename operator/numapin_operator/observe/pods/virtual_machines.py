"""Pods that a RuntimeClass runs in a virtual machine. Does no I/O."""

from collections.abc import Mapping
from typing import Any, Final

from numapin_operator.placement import PodView, pod_cpus

_KATA: Final = "kata"
"""Part of the names of the RuntimeClasses that Kata Containers installs."""


def runs_in_virtual_machine(view: PodView, spec: Mapping[str, Any]) -> str:
    """Why exclusive CPUs would not reach the pod's processes, with the field; empty if they would.

    The threads of the virtual CPUs belong to the pod's sandbox, not to the cgroup of a container.
    A RuntimeClass of a virtual machine states its overhead, which the API server writes into the
    pod; no field of a pod says it more directly.
    Source: Kubernetes, "Pod Overhead"; Kata Containers, docs/design/host-cgroups.md.

    Args:
        view: the parsed pod.
        spec: its spec.
    """
    name = spec.get("runtimeClassName")
    if not isinstance(name, str) or not pod_cpus(view):
        return ""
    if not spec.get("overhead") and _KATA not in name:
        return ""
    return (
        f"spec.runtimeClassName: {name!r:.80} runs the pod in a virtual machine, whose processes "
        "belong to no container; the pod shares CPUs and memory. Request no whole number of CPUs, "
        "or exclude it by pods.podSelector of the policy"
    )
