"""Virtual machines of KubeVirt, which has them scheduled by what it knows of the kubelet.

Does no I/O.
"""

from collections.abc import Mapping
from typing import Final

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.meta.modes import is_enforced
from numapin_operator.placement import PodView, exclusive_cpus

CPU_MANAGER: Final = ("kubevirt.io/cpumanager", "cpumanager")
"""The label of a Node that the pod of a virtual machine with dedicated CPUs selects.

KubeVirt sets it to whether the kubelet's CPU manager has the static policy: the first one since
KubeVirt 1.8, which goes on setting the second one of before.
Source: KubeVirt, `HeartBeat.do` and `NodeSelectorRenderer`.
"""

_APP: Final = "kubevirt.io"
_LAUNCHER: Final = "virt-launcher"
_COMPUTE: Final = "compute"


def no_dedicated_cpus(policy: CpuPolicySpec, labels: Mapping[str, str]) -> str:
    """What KubeVirt's label keeps away from a Node where the policy is in force; empty if none."""
    label = next((label for label in CPU_MANAGER if label in labels), "")
    if not is_enforced(policy.mode) or labels.get(label) != "false":
        return ""
    return (
        f"KubeVirt sets the label {label} to false, so that virtual machines with "
        "dedicatedCpuPlacement are not scheduled there (docs/kubevirt.md)"
    )


def launches_dedicated(pod: PodView) -> bool:
    """Whether a pod is made as KubeVirt makes that of a virtual machine with dedicated CPUs."""
    names = {one.name for one in pod.containers}
    labelled = pod.labels.get(_APP) == _LAUNCHER
    if not (labelled or (pod.name.startswith(f"{_LAUNCHER}-") and _COMPUTE in names)):
        return False
    return any(one.name == _COMPUTE and exclusive_cpus(pod, one) for one in pod.containers)
