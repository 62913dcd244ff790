"""Finds what a question needs, and explains the pod, node or policy."""

from dataclasses import dataclass, replace
from typing import Final

from numapin_api.names import NODE_ASSIGNMENT_KIND
from numapin_cli.advice.explanation import Explanation, Line
from numapin_cli.advice.nodes import explain_node
from numapin_cli.advice.pods import explain_pod
from numapin_cli.advice.policies import explain_policy
from numapin_cli.asked.objects import Asked
from numapin_cli.asked.own_words import OwnWords
from numapin_cli.asked.target import NODE, POLICY
from numapin_cli.inputs.described_cluster import observed, pod_with_claims
from numapin_cli.inputs.manifests import Manifest, section
from numapin_cli.live.node_state import NodeState
from numapin_cli.near_names import did_you_mean
from numapin_cli.subcommand import CommandError
from numapin_operator.observe.records import PolicyView

_SILENT: Final = "whether it has CPUs of its own is in its annotations only with --annotate-pods"

_BY_EVENTS: Final = (
    "this is what numapin has told about it in Events, which the API server keeps for an hour by"
    " default; what would help is known of pods that exist"
)

_FROM_THE_POD: Final = (
    "this is what the pod itself says. Who has the CPUs of its node, and what would help, is shown "
    "to those who may read NodeAssignments (the ClusterRole numapin-viewer)"
)


@dataclass(frozen=True, slots=True)
class Answerer:
    """Answers one question.

    Attributes:
        asked: the question.
        node: the only node to ask about; empty for all.
        now: the time in seconds since 1970; without it no container is moved to make room.
    """

    asked: Asked
    node: str = ""
    now: float | None = None

    def answer(self) -> Explanation:
        """The explanation.

        Raises:
            CommandError: an object cannot be read, or there is no such node.
        """
        asked = self.asked
        if asked.kind == POLICY:
            completed = next(iter(asked.objects.of("CpuPolicy").values()))
            named = asked.objects.of("CpuPolicy").get(asked.name, completed)
            return explain_policy(PolicyView.decode(named.content))
        if asked.kind == NODE:
            reported = self._reported(asked.name)
            return explain_node(observed(asked.objects), asked.name, reported, self.now)
        return self._pod()

    def _pod(self) -> Explanation:
        asked = self.asked
        if asked.told:
            return _of_one_gone(asked)
        if asked.forbidden:
            return _in_its_words(asked.manifest, asked.forbidden)
        pod = pod_with_claims(asked.manifest, asked.objects)
        wanted = self.node or pod.node
        if not asked.manifest.stored or not pod.node:
            pod = replace(pod, node="")
            others = (self._existing(wanted),) if wanted else asked.others
        elif self.node and self.node != pod.node:
            others = (self._existing(self.node),)
        else:
            others = asked.others
        reported = self._reported(pod.node) if pod.node else None
        explained = explain_pod(observed(asked.objects), pod, others, reported, self.now)
        explained = replace(explained, assumed=tuple(filter(None, (asked.assumed,))))
        return self._with_limits(explained)

    def _existing(self, node: str) -> str:
        known = self.asked.objects.of("Node")
        if node not in known:
            raise CommandError(f"there is no node {node}; {did_you_mean(node, known)}")
        return node

    def _with_limits(self, explained: Explanation) -> Explanation:
        left = self.asked.nodes - len(self.asked.others)
        if not left or self.node or not explained.tried:
            return explained
        text = f"{left} of {self.asked.nodes} other nodes were not tried; --nodes tries more"
        return replace(explained, limits=(*explained.limits, text))

    def _reported(self, node: str) -> NodeState:
        found = self.asked.objects.of(NODE_ASSIGNMENT_KIND).get(node)
        return NodeState.decode(found.content) if found else NodeState(node)


def _of_one_gone(asked: Asked) -> Explanation:
    """Explain a pod that does not exist any more, by what was told about it."""
    last = next((one for one in reversed(asked.told) if one.is_refusal or one.is_placement), None)
    verdict = "is gone"
    if last is not None:
        verdict += "; it was refused" if last.is_refusal else "; it had CPUs of its own"
    alike = f"{', '.join(asked.alike)}: numapin explain NAME" if asked.alike else ""
    return Explanation(
        f"pod {asked.name}",
        verdict,
        last is None or not last.is_refusal,
        reason=last.reason if last is not None and last.is_refusal else "",
        why=(_BY_EVENTS,),
        facts=(
            *(Line(one.time, f"{one.reason}: {one.note}") for one in asked.told),
            *([Line("pods with names like it", alike)] if alike else []),
        ),
    )


def _in_its_words(pod: Manifest, forbidden: str) -> Explanation:
    """Explain a pod by what it says itself; `forbidden` says why no more is known."""
    said = OwnWords.of(pod)
    if said.reason:
        verdict, why = "was refused; it runs on shared CPUs", said.numbers
    elif said.containers:
        verdict, why = "has CPUs of its own", ""
    else:
        verdict, why = "does not say that it was refused", _SILENT
    return Explanation(
        f"pod {pod.name}",
        verdict,
        not said.reason,
        node=str(section(pod.content, "spec").get("nodeName") or ""),
        reason=said.reason,
        why=tuple(filter(None, (why, f"{forbidden}; {_FROM_THE_POD}"))),
        facts=tuple(Line(f"container {name}", text) for name, text in said.containers),
    )
