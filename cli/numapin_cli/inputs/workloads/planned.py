"""Which objects of files are planned: themselves, or the pods that controllers create from them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from numapin_api.names import NODE_ASSIGNMENT_KIND
from numapin_api.quantity import plural
from numapin_cli.inputs.manifests import VERSIONS, WORKLOADS, Manifest, section
from numapin_cli.inputs.workloads.rollouts import stay
from numapin_cli.inputs.workloads.workload import Workload, controller_of
from numapin_cli.subcommand import Faults


@dataclass
class Planned:
    """What is planned of the objects of a cluster and of files.

    Attributes:
        cluster: what the cluster has.
        written: what people wrote, with pods in the place of workloads.
        notes: what is left out or replaced, a line each, for people.
    """

    cluster: list[Manifest]
    written: list[Manifest] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def planned(
    cluster: Sequence[Manifest],
    written: Sequence[Manifest],
    nodes: Mapping[str, Manifest],
    faults: Faults,
) -> Planned:
    """Choose what is planned.

    The pods of a cluster's workloads are among its objects. A workload that people wrote replaces
    the pods that it has in the cluster, as if its roll-out had ended.

    Args:
        cluster: every object that the cluster has.
        written: every object that people wrote.
        nodes: the Nodes of both, on which DaemonSets run.
        faults: takes why a workload cannot be used.
    """
    made = Planned([one for one in cluster if one.kind in VERSIONS])
    unknown = [one for one in cluster if one.kind not in VERSIONS and one.kind not in WORKLOADS]
    stored = [one for one in written if one.kind == "Pod" and one.stored]
    creators = {_key(one.kind, one) for one in written if one.kind in WORKLOADS}
    for one in written:
        with faults.collected():
            if why := _never_runs(one, creators, stored):
                made.notes.append(f"left out: {one.kind} {one.name}: {why}")
            elif one.kind in WORKLOADS:
                _create(Workload.parse(one), made, nodes)
            elif one.kind in VERSIONS:
                made.written.append(one)
            else:
                unknown.append(one)
    if there := [one for one in cluster if one.kind in WORKLOADS]:
        what = "of the cluster: its pods are planned as they are"
        made.notes.append(f"left out: {_counted(there)} {what}")
    if unknown:
        made.notes.append(f"left out: {_counted(unknown)}: nothing is planned for these kinds")
    return made


def one_of_each(manifests: Sequence[Manifest]) -> Iterator[tuple[Manifest, str]]:
    """Each pod that people wrote, and one for each workload, with a line that says so.

    It is the last one, because a StatefulSet replaces that one first.
    """
    counts = Counter(one.creator for one in manifests)
    last = {one.creator: one for one in manifests}
    for one in manifests:
        if not one.creator:
            yield one, ""
        elif one is last[one.creator]:
            count = counts[one.creator]
            many = "" if count == 1 else f", as each of its {count} pods"
            yield one, f"{one.creator}: {one.name} is explained{many}"


def _create(workload: Workload, made: Planned, nodes: Mapping[str, Manifest]) -> None:
    """Have the pods of a workload created, and those that it has in the cluster deleted."""
    why = workload.why_none()
    old = [one for one in made.cluster if one.kind == "Pod" and workload.controls(one)]
    kept = {one.name for one in stay(workload, old)}
    pods = [] if why else [one for one in workload.pods(nodes) if one.name not in kept]
    made.written += pods
    if not pods:
        made.notes.append(f"left out: {workload.title}: {why or _reason(workload, kept)}")
    gone = [one for one in old if one.name not in kept]
    if gone:
        many = f"{plural(len(gone), 'pod')} of the cluster replaced by {len(pods)}"
        made.notes.append(f"{workload.title}: {many}")
        made.cluster = ended(made.cluster, gone)
    if kept and pods:
        made.notes.append(f"{workload.title}: {plural(len(kept), 'pod')} of the cluster kept")


def _reason(workload: Workload, kept: Collection[str]) -> str:
    if workload.kind == "StatefulSet" and kept:
        return "partition keeps all of its pods as they are"
    return "it matches none of the Nodes"


def ended(cluster: Iterable[Manifest], pods: Iterable[Manifest]) -> list[Manifest]:
    """The objects of a cluster once some of its pods have ended: no container of them runs."""
    gone = {one.name: str(one.metadata.get("uid")) for one in pods}
    left = (one for one in cluster if one.kind != "Pod" or one.name not in gone)
    return [_without(one, set(gone.values())) for one in left]


def _without(manifest: Manifest, uids: Collection[str]) -> Manifest:
    """A NodeAssignment once no container of some pods runs any more; others as they are."""
    if manifest.kind != NODE_ASSIGNMENT_KIND:
        return manifest
    status = section(manifest.content, "status")
    lists = {key: one for key, one in status.items() if isinstance(one, list)}
    left = {key: [each for each in one if _uid_of(each) not in uids] for key, one in lists.items()}
    return replace(manifest, content={**manifest.content, "status": {**status, **left}})


def _uid_of(entry: object) -> str:
    """The pod of an entry in a status; empty if it names none."""
    return str(entry.get("podUID") or "") if isinstance(entry, Mapping) else str(entry)


def _never_runs(
    manifest: Manifest, creators: Collection[tuple[str, str]], stored: Sequence[Manifest]
) -> str:
    """Why a pod or a workload that people wrote is never created as it stands; or empty.

    Args:
        manifest: what people wrote.
        creators: the kinds and names of all workloads that they wrote.
        stored: the pods among it that the API server has.
    """
    if manifest.kind not in WORKLOADS and manifest.kind != "Pod":
        return ""
    if not manifest.stored and "helm.sh/hook" in section(manifest.metadata, "annotations"):
        return "a hook of Helm, which runs and ends at another time"
    if manifest.kind == "Pod":
        return ""
    kind, name = controller_of(manifest)
    if _key(kind, manifest, name) in creators:
        return f"{kind} {name}, which is given too, creates it"
    if manifest.stored and manifest.kind != "CronJob":
        workload = Workload.parse(manifest)
        if any(workload.controls(pod) for pod in stored):
            return "its pods are given too"
    return ""


def _key(kind: str, beside: Manifest, name: str = "") -> tuple[str, str]:
    """The kind and the name of an object in the namespace of another one, or of that one."""
    named = name or str(beside.metadata.get("name"))
    return kind, f"{beside.metadata.get('namespace') or 'default'}/{named}"


def _counted(manifests: Iterable[Manifest]) -> str:
    """How many there are of each kind."""
    counts = Counter(one.kind for one in manifests)
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
