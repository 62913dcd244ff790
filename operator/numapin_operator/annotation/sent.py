"""What was written to pods, until the watch shows it. Does no I/O."""

from collections.abc import Iterable
from dataclasses import dataclass

from numapin_operator.placement import PodView


@dataclass(frozen=True, slots=True)
class _Sent:
    """A text that was written, None for none, and the pod as it was known then."""

    text: str | None
    known: PodView


class SentTexts:
    """The texts that were written to pods which have not changed since, by node."""

    def __init__(self) -> None:
        self._of_node: dict[str, dict[str, _Sent]] = {}

    def note(self, node: str, pod: PodView, text: str | None) -> None:
        """A text was written to a pod of a node."""
        self._of_node.setdefault(node, {})[pod.uid] = _Sent(text, pod)

    def has(self, node: str, pod: PodView, text: str | None) -> bool:
        """Whether a pod will show this text once the watch has delivered it."""
        sent = self._of_node.get(node, {}).get(pod.uid)
        return sent is not None and sent.text == text and sent.known is pod

    def forget_seen(self, node: str, pods: Iterable[PodView]) -> None:
        """Forget what was sent to pods that have changed since, or are gone."""
        if sent := self._of_node.pop(node, None):
            known = {pod.uid: pod for pod in pods}
            waits = {uid: one for uid, one in sent.items() if known.get(uid) is one.known}
            if waits:
                self._of_node[node] = waits
