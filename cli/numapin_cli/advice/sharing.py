"""Why pods of a plan share CPUs.

Does no I/O.
"""

from collections.abc import Collection, Iterator

from numapin_cli.advice.eligibility import why_shares
from numapin_cli.advice.fate import Standing, decided_fate
from numapin_cli.what_if import Foreseen


def why_planned_pods_share(
    foreseen: Foreseen, pods: Collection[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The pods that share CPUs, or of which a container does, with the reasons.

    Refused pods are left out: their message says it. So are all if nothing is planned on the node.

    Args:
        foreseen: the plan of a node.
        pods: the namespaces and names (`namespace/name`) of the pods that are asked about.
    """
    for pod in foreseen.picture.pods:
        name = f"{pod.namespace}/{pod.name}"
        if name not in pods or not foreseen.picture.ranked:
            continue
        fate = decided_fate(foreseen.picture, foreseen.decision, pod.uid)
        if fate.standing in {Standing.REFUSED, Standing.NOT_PLANNED}:
            continue
        reasons = (fate.message,) if fate.message else why_shares(foreseen.picture.ranked[0], pod)
        if found := tuple(dict.fromkeys(reasons)):
            yield name, found
