"""The objects of a report of `numapin report`, or of a dump: nothing of them changes."""

from collections.abc import Collection, Iterable
from typing import Any

from numapin_api.names import CPU_POLICY_KIND, NODE_ASSIGNMENT_KIND
from numapin_cli.inputs.objects import Objects
from numapin_cli.live.node_state import NodeState
from numapin_operator.observe.records import PolicyView
from numapin_page.live.kept import kept, kept_node, pods_like
from numapin_page.views.node_row import Beside

Json = dict[str, Any]


class FileParts:
    """The objects; see `Parts`."""

    def __init__(self, objects: Objects, source: str) -> None:
        """Args: `source` names the files for people."""
        self._objects, self._source = objects, source
        self._assignments = objects.of(NODE_ASSIGNMENT_KIND)
        policies = objects.of(CPU_POLICY_KIND)
        self._policies = {name: PolicyView.decode(one.content) for name, one in policies.items()}

    def names(self) -> Collection[str]:
        """See `Parts`."""
        return {*self._assignments, *self._objects.of("Node")}

    def state(self, node: str) -> NodeState:
        """See `Parts`."""
        found = self._assignments.get(node)
        return NodeState.decode(found.content) if found else NodeState(node)

    def beside(self, node: str, policy: str) -> Beside:
        """See `Parts`."""
        view, stored = self._policies.get(policy), self._objects.of("Node").get(node)
        cores = view is not None and view.spec.options.full_pcpus_only
        return Beside(kept_node(dict(stored.content)) if stored else "", whole_cores=cores)

    def status(self) -> Json:
        """See `Parts`."""
        notes = list(self._objects.notes)
        read: Json = {"loaded": True, "problem": "", "forbidden": False, "notes": notes}
        return {"source": self._source, "isFile": True, **read}

    def with_pod(self, text: str, most: int) -> Iterable[Json]:
        """See `Parts`."""
        found = ((name, kept(dict(one.content))) for name, one in self._assignments.items())
        return pods_like(text, found, most)
