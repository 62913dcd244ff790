"""numapin's own pods: which versions run, and which pods do not.

Does no I/O.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from numapin_operator.observe.node_status import json_object

COMPONENTS: Final = ("operator", "enforcer", "standby")
"""The programs of an installation, by the label of their pods."""

LABEL: Final = "app.kubernetes.io/component"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ProgramPod:
    """One pod of numapin.

    Attributes:
        component: its label; empty if it has none.
        node: where it is bound; empty if nowhere.
        version: the tag of its image, or the digest of one without a tag.
        problem: why it is not ready; empty if it is.
    """

    name: str
    component: str
    node: str
    version: str
    problem: str

    @classmethod
    def decode(cls, body: Mapping[str, Any]) -> "ProgramPod":
        """Read a pod; accepts every valid one."""
        metadata, spec = json_object(body, "metadata"), json_object(body, "spec")
        containers = spec.get("containers") or [{}]
        return cls(
            name=str(metadata.get("name")),
            component=str(json_object(metadata, "labels").get(LABEL) or ""),
            node=str(spec.get("nodeName") or ""),
            version=version_of(str(containers[0].get("image") or "")),
            problem=_problem(json_object(body, "status")),
        )


def version_of(image: str) -> str:
    """The tag of an image, or the first letters of its digest."""
    named, _, digest = image.partition("@")
    tag = named.rpartition("/")[2].partition(":")[2]
    return tag or digest.removeprefix("sha256:")[:12] or "latest"


def _problem(status: Mapping[str, Any]) -> str:
    conditions = {one.get("type"): one for one in status.get("conditions") or ()}
    if (conditions.get("Ready") or {}).get("status") == "True":
        return ""
    for container in status.get("containerStatuses") or ():
        waiting = json_object(json_object(container, "state"), "waiting")
        if reason := waiting.get("reason"):
            return str(reason)
    scheduled = conditions.get("PodScheduled") or {}
    if scheduled.get("status") == "False":
        return str(scheduled.get("reason") or "Unschedulable")
    return str(status.get("phase") or "Pending") if not conditions else "not ready"


@dataclass(frozen=True, slots=True)
class Program:
    """The pods of one component.

    Attributes:
        versions: how many pods have each version, the most frequent first.
        others: the nodes of the pods that have another version than most.
        unready: the pods that are not ready, by name.
    """

    component: str
    pods: int
    versions: Mapping[str, int]
    unready: Sequence[ProgramPod]
    others: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def to_json(self) -> Json:
        """The counts for scripts."""
        return {
            "component": self.component,
            "pods": self.pods,
            "ready": self.pods - len(self.unready),
            "versions": dict(self.versions),
            "otherVersions": {version: list(nodes) for version, nodes in self.others.items()},
            "notReady": [
                {"pod": one.name, "node": one.node or None, "reason": one.problem}
                for one in self.unready
            ],
        }


def programs(pods: Iterable[ProgramPod]) -> list[Program]:
    """The components of an installation, also one that has no pod."""
    listed = sorted(pods, key=lambda one: one.name)
    return [_program(name, [one for one in listed if one.component == name]) for name in COMPONENTS]


def _program(component: str, pods: Sequence[ProgramPod]) -> Program:
    versions = dict(Counter(one.version for one in pods).most_common())
    others = {
        version: [one.node for one in pods if one.version == version]
        for version in list(versions)[1:]
    }
    return Program(component, len(pods), versions, [one for one in pods if one.problem], others)
