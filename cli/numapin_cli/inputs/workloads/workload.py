"""The pods that a controller would create for a workload.

Source: Kubernetes v1.36, pkg/controller (names, labels and numbers of pods).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from numapin_cli.inputs.manifests import Manifest, section
from numapin_cli.inputs.workloads.daemon_nodes import runs_on
from numapin_cli.subcommand import CommandError

MOST_PODS: Final = 10_000
"""The most pods of one workload; a node of Kubernetes runs 110 by default."""

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Of the letters that the API server appends to names. Source: apimachinery, util/rand."""

_OWN_JOBS: Final = {None, "", "kubernetes.io/job-controller"}
"""Values of `managedBy` for which the Job controller creates the pods."""

_LONGEST_BASE: Final = 58
"""Characters to which five are appended. Source: apiserver, storage/names."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment, ReplicaSet, StatefulSet, DaemonSet, Job or CronJob of a file.

    Attributes:
        manifest: the object.
        kind: its kind; `Job` for the run of a CronJob.
        name: its name, or one made up from `generateName`.
        spec: its spec; that of `jobTemplate` for a CronJob.
        field: where this spec is in the object.
    """

    manifest: Manifest
    kind: str
    name: str
    spec: Mapping[str, Any]
    field: str = "spec"

    @classmethod
    def parse(cls, manifest: Manifest) -> "Workload":
        """Read the object; a CronJob counts as one run of its Job.

        Raises:
            CommandError: it has no spec or no template.
        """
        base = str(manifest.metadata.get("generateName") or "")
        name = str(manifest.metadata.get("name") or base + _letters(manifest.source, 5))
        made = cls(manifest, manifest.kind, name, section(manifest.content, "spec"))
        if manifest.kind == "CronJob":
            run = section(section(made.spec, "jobTemplate"), "spec")
            minute = uuid5(NAMESPACE_URL, name).int % 10**8
            made = cls(manifest, "Job", f"{name}-{minute:08}", run, "spec.jobTemplate.spec")
        if not section(made.template, "spec"):
            raise made.error("template.spec", "is missing; give the pods' spec")
        return made

    @property
    def template(self) -> Mapping[str, Any]:
        """What its pods are made from."""
        return section(self.spec, "template")

    @property
    def title(self) -> str:
        """Its kind and name, as messages name it."""
        return f"{self.manifest.kind} {self.manifest.name or self.name}"

    def why_none(self) -> str:
        """Why it creates no pod; empty if it creates some."""
        given = section(self.manifest.content, "spec")
        if given.get("suspend") is True or self.spec.get("suspend") is True:
            return "is suspended"
        if self.kind == "Deployment" and given.get("paused") is True:
            return "is paused, so its pods stay as they are"
        if self.kind == "Job":
            if (manager := self.spec.get("managedBy")) not in _OWN_JOBS:
                return f"is managed by {manager}, not by the Job controller"
            return "has ended" if self._has_ended() else "" if self._count() else "runs 0 pods"
        return "" if self.kind == "DaemonSet" or self._count() else "has 0 replicas"

    def pods(self, nodes: Mapping[str, Manifest]) -> Iterator[Manifest]:
        """Its pods.

        Args:
            nodes: all Nodes; without any a DaemonSet has one pod, which names no node.

        Raises:
            CommandError: the number of pods cannot be used.
        """
        if self.kind == "DaemonSet" and nodes:
            fit = [name for name, node in nodes.items() if runs_on(self.template, node.content)]
            yield from (self._pod(self._named(node), {}, node) for node in fit)
            return
        count = 1 if self.kind == "DaemonSet" else self._count()
        for number in range(count):
            if self.kind == "StatefulSet":
                index = str(self._first + number)
                yield self._pod(f"{self.name}-{index}", _set_labels(self.name, index))
            elif self.spec.get("completionMode") == "Indexed":
                labels = {"batch.kubernetes.io/job-completion-index": str(number)}
                yield self._pod(self._named(str(number), f"{number}-"), labels)
            else:
                yield self._pod(self._named(str(number)), {})

    def controls(self, pod: Manifest) -> bool:
        """Whether it has created a pod of the cluster."""
        if _space(pod) != _space(self.manifest):
            return False
        kind, name = controller_of(pod)
        if self.manifest.kind == "CronJob":
            runs = rf"{re.escape(str(self.manifest.metadata.get('name')))}-\d+"
            return kind == "Job" and re.fullmatch(runs, name) is not None
        if self.kind == "Deployment":
            template = section(pod.metadata, "labels").get("pod-template-hash")
            return (kind, name) == ("ReplicaSet", f"{self.name}-{template}")
        return (kind, name) == (self.kind, self.name)

    def is_below_partition(self, pod: Manifest) -> bool:
        """Whether the roll-out of a StatefulSet leaves one of its pods as it is."""
        strategy = section(self.spec, "updateStrategy")
        partition = _number(section(strategy, "rollingUpdate").get("partition"), 0) or 0
        ordinal = str(pod.metadata.get("name")).removeprefix(f"{self.name}-")
        if self.kind != "StatefulSet" or not ordinal.isdecimal():
            return False
        return self._first <= int(ordinal) < self._first + min(partition, self._count())

    def error(self, field: str, problem: str) -> CommandError:
        """What is wrong with a field of its spec."""
        return CommandError(f"{self.manifest.source}: {self.field}.{field}: {problem}")

    @property
    def _first(self) -> int:
        """The number of a StatefulSet's first pod."""
        return _number(section(self.spec, "ordinals").get("start"), 0) or 0

    def _has_ended(self) -> bool:
        conditions = section(self.manifest.content, "status").get("conditions")
        return any(
            isinstance(one, Mapping)
            and one.get("type") in {"Complete", "Failed"}
            and one.get("status") == "True"
            for one in (conditions if isinstance(conditions, list) else ())
        )

    def _count(self) -> int:
        """How many pods run at once."""
        if self.kind != "Job":
            return self._whole("replicas", 1)
        parallel = self._whole("parallelism", 1)
        done = _number(section(self.manifest.content, "status").get("succeeded"), 0) or 0
        left = self._whole("completions", parallel + done) - done
        return max(0, min(parallel, left))

    def _whole(self, field: str, default: int) -> int:
        count = _number(self.spec.get(field), default)
        if count is None or not 0 <= count <= MOST_PODS:
            shown = repr(self.spec.get(field))[:40]
            raise self.error(field, f"must be a number from 0 to {MOST_PODS}, not {shown}")
        return count

    def _named(self, which: str, between: str = "") -> str:
        """A name as the API server completes it, equal at each call."""
        base = f"{self._set}-{between}"[:_LONGEST_BASE]
        return base + _letters(f"{_space(self.manifest)}/{self._set}/{which}", 5)

    @property
    def _set(self) -> str:
        """The name of what controls the pods: of a Deployment, its ReplicaSet."""
        return f"{self.name}-{_letters(self.name, 10)}" if self.kind == "Deployment" else self.name

    @property
    def _uid(self) -> str:
        """The UID of what controls the pods."""
        return str(uuid5(NAMESPACE_URL, f"{self.kind}/{_space(self.manifest)}/{self._set}"))

    def _pod(self, name: str, labels: Mapping[str, str], node: str = "") -> Manifest:
        template = section(self.template, "metadata")
        kind = "ReplicaSet" if self.kind == "Deployment" else self.kind
        owner = {"kind": kind, "name": self._set, "controller": True}
        owner["uid"] = self._uid
        metadata = {
            "name": name,
            "namespace": _space(self.manifest),
            "labels": {**section(template, "labels"), **self._labels(), **labels},
            "annotations": section(template, "annotations"),
            "ownerReferences": [owner],
        }
        spec = {**section(self.template, "spec"), **({"nodeName": node} if node else {})}
        content = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        source = f"{self.manifest.source}: {self.field}.template"
        return Manifest(source, "Pod", content, creator=self.title)

    def _labels(self) -> Mapping[str, str]:
        """The labels that the controller gives each of its pods."""
        made_up, prefix = _letters(self.name, 10), "batch.kubernetes.io/"
        match self.kind:
            case "Deployment":
                return {"pod-template-hash": made_up}
            case "StatefulSet":
                return {"controller-revision-hash": f"{self.name}-{made_up}"}
            case "DaemonSet":
                return {"controller-revision-hash": made_up, "pod-template-generation": "1"}
            case "Job" if self.spec.get("manualSelector") is not True:
                labels = {"controller-uid": self._uid, "job-name": self.name}
                return {**labels, **{prefix + key: value for key, value in labels.items()}}
        return {}


def controller_of(manifest: Manifest) -> tuple[str, str]:
    """The kind and the name of the object that controls another; empty if none does."""
    owners = manifest.metadata.get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, Mapping) and owner.get("controller") is True:
            return str(owner.get("kind")), str(owner.get("name"))
    return "", ""


def _set_labels(name: str, index: str) -> Mapping[str, str]:
    return {
        "statefulset.kubernetes.io/pod-name": f"{name}-{index}",
        "apps.kubernetes.io/pod-index": index,
    }


def _number(value: object, default: int) -> int | None:
    """A whole number, the default if there is none; None if it is something else."""
    if value is None:
        return default
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _letters(text: str, count: int) -> str:
    """Letters that look random and are the same for the same text."""
    number = uuid5(NAMESPACE_URL, text).int
    return "".join(_ALPHABET[number // 27**place % 27] for place in range(count))


def _space(manifest: Manifest) -> str:
    return str(manifest.metadata.get("namespace") or "default")
