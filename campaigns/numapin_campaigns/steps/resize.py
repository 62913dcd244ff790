"""The steps of a resize in place, from the request to the report."""

import json
from collections.abc import Callable
from typing import Final

from numapin_campaigns.parts.all_parts import Parts
from numapin_campaigns.parts.part import ENFORCER, KUBELET, OPERATOR, STANDBY, Part
from numapin_campaigns.steps.passing import Step
from numapin_lab.running_lab import RunningLab

RESIZE_STEPS: Final = ("asked", "granted", "written", "reported")


def resize(lab: RunningLab, name: str, cpu: str) -> None:
    """Ask for other CPUs for a pod's one container, as a user does."""
    amounts = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}
    patch = {"spec": {"containers": [{"name": "main", "resources": amounts}]}}
    lab.kubectl("patch", "pod", name, "--subresource=resize", "-p", json.dumps(patch))


def granted(lab: RunningLab, name: str) -> str:
    """The CPUs that the kubelet says it has granted."""
    (status,) = lab.pod(name)["status"]["containerStatuses"]
    return str(status["allocatedResources"]["cpu"])


def parts_of_resize(lab: RunningLab) -> Parts:
    """The parts of a lab whose node is this machine; the kubelet is only held."""
    operator, enforcer, cluster = lab.agent(OPERATOR), lab.agent(ENFORCER), lab.cluster
    return Parts(
        {
            OPERATOR: Part(operator.daemon, lambda _: operator.ready()),
            ENFORCER: Part(enforcer.daemon, lambda _: enforcer.ready()),
            STANDBY: Part(cluster.standby),
            KUBELET: Part(cluster.kubelet.daemon),
        }
    )


def steps_of_resize(
    lab: RunningLab, name: str, cpu: str, written: Callable[[], bool]
) -> list[Step]:
    """The steps of a resize of a pod's one container.

    Args:
        lab: its node is this machine.
        name: the pod.
        cpu: the amount that is asked for.
        written: whether the operator has written what follows from it.
    """

    def asked() -> bool:
        (container,) = lab.pod(name)["spec"]["containers"]
        return bool(container["resources"]["requests"]["cpu"] == cpu)

    def reached() -> tuple[Callable[[], bool], ...]:
        return (asked, lambda: granted(lab, name) == cpu, written, lab.in_force)

    held = (("kubelet",), ("operator",), ("enforcer",), ("operator",))
    return [Step(*one) for one in zip(RESIZE_STEPS, held, reached(), strict=True)]
