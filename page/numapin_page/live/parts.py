"""What the page is made of, whether an API server has it or files do."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from numapin_cli.live.node_state import NodeState
from numapin_page.views.node_row import Beside

Json = dict[str, Any]


class Parts(Protocol):
    """The objects of a cluster."""

    def names(self) -> Collection[str]:
        """Every node that is known."""

    def state(self, node: str) -> NodeState:
        """What its objects say of a node."""

    def beside(self, node: str, policy: str) -> Beside:
        """What other objects say of it; `policy` governs it."""

    def status(self) -> Mapping[str, Any]:
        """Whether all has been read, what fails, and what may not be read."""

    def with_pod(self, text: str, most: int) -> Iterable[Json]:
        """The pods of assignments whose `namespace/name` has a text in it, `most` at most."""
