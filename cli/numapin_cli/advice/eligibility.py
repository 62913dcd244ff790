"""Why a pod shares CPUs although the policy assigns exclusive CPUs.

Does no I/O.
"""

from collections.abc import Collection, Iterator

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_cli.advice.fate import Standing, planned_fates
from numapin_cli.advice.question import Question
from numapin_cli.what_if import Foreseen
from numapin_operator.observe.records import PolicyView
from numapin_operator.placement import PodView


def why_shared(question: Question) -> Iterator[str]:
    """The reasons as for `why_shares`, of the pod as it would be created again."""
    governing, pod = question.state.policies_of(question.node)[0], question.newcomer
    (marked,) = question.with_pod(question.without({pod.uid}), pod).pods[-1:]
    yield from dict.fromkeys(why_shares(governing, marked))


def why_planned_pods_share(
    foreseen: Foreseen, pods: Collection[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The pods that share CPUs, or of which a container does, with the reasons.

    Refused pods are left out: their message says it. So are all if nothing is planned on the node.

    Args:
        foreseen: the plan of a node.
        pods: the namespaces and names (`namespace/name`) of the pods that are asked about.
    """
    for name, pod, fate in planned_fates(foreseen, pods):
        if fate.standing in {Standing.REFUSED, Standing.NOT_PLANNED}:
            continue
        reasons = (fate.message,) if fate.message else why_shares(foreseen.picture.ranked[0], pod)
        if found := tuple(dict.fromkeys(reasons)):
            yield name, found


def why_shares(governing: PolicyView, pod: PodView) -> Iterator[str]:
    """The reasons, each a sentence that names the field; none if the pod gets exclusive CPUs.

    Args:
        governing: the policy that governs the pod's node.
        pod: the pod, marked with whether the policy selects it.
    """
    if pod.problem:
        yield pod.problem
    if not pod.selected:
        yield f"policy {governing.name} does not select it: {_selectors(governing.spec, pod)}"
    allowed = governing.spec.pods.qos_classes
    if pod.qos not in allowed:
        yield f"its QoS class is {pod.qos}, and pods.qosClasses of policy {governing.name} is" + (
            f" {', '.join(allowed)}"
        )
        yield from _unequal(pod)
    if pod.claims_unknown:
        yield "a ResourceClaim of it is not allocated yet"
    yield from _of_containers(pod)


def _selectors(spec: CpuPolicySpec, pod: PodView) -> str:
    if pod.namespace in spec.pods.confined_namespaces:
        return f"pods.confinedNamespaces keeps pods of {pod.namespace} on the reserved CPUs"
    given = []
    if spec.pods.namespace_selector is not None:
        given.append("pods.namespaceSelector selects its namespace by labels")
    if spec.pods.pod_selector is not None:
        given.append("pods.podSelector selects pods by their labels")
    return "; ".join(given)


def _unequal(pod: PodView) -> Iterator[str]:
    """Why a pod is not Guaranteed."""
    if pod.pod_level is not None:
        yield "spec.resources: requests and limits of CPU and memory are not set and equal"
        return
    for one in pod.containers:
        yield from (f"container {one.name}: {why}" for why in one.unequal)


def _of_containers(pod: PodView) -> Iterator[str]:
    if pod.pod_level is not None and pod.pod_level.cpu_millis % 1000:
        yield f"spec.resources requests {pod.pod_level.cpu_millis / 1000:g} CPUs, no whole number"
    for one in pod.containers:
        if one.cpu_claims:
            yield f"container {one.name}: the DRA driver dra.cpu gives it CPUs, not numapin"
        elif not one.cpu_millis:
            yield f"container {one.name}: it requests no CPU"
        elif not one.whole_cpus:
            yield (
                f"container {one.name}: it requests {one.cpu_millis / 1000:g} CPUs, no whole number"
            )
