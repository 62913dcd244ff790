"""One request of an author to the API server, and the random choices that lead to it.

An author's operation number N depends on the seed, on N, and on the few objects that it may refer
to (`Cast`), so that a failure can be repeated with the same seed.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from numapin_client.resources import Json, Key, Resource


@dataclass(frozen=True)
class Operation:
    """One request.

    Attributes:
        what: the kind of trouble, for the log.
        verb: create, patch, replace or delete.
        resource: the resource.
        key: the object; ignored where the body names it.
        body: the object or the merge patch; for a deletion, the options.
        subresource: such as status.
    """

    what: str
    verb: str
    resource: Resource
    key: Key
    body: Json = field(default_factory=dict)
    subresource: str = ""


@dataclass
class Cast:
    """What operations refer to.

    Attributes:
        control: nodes that must stay unharmed; a tenant may still bind pods to them.
        tenant: nodes with honest enforcers, where any policy may govern.
        evil: nodes whose enforcers and kubelets lie.
        node_uids: the UID of each Node.
        pods: the tenants' pods that exist, with their UIDs.
        policies: the authors' policies that exist.
        victims: UIDs of the pods of the control nodes.
        topologies: captured machines, as enforcers report them.
    """

    control: Sequence[str]
    tenant: Sequence[str]
    evil: Sequence[str]
    node_uids: dict[str, str] = field(default_factory=dict)
    pods: dict[Key, str] = field(default_factory=dict)
    policies: set[str] = field(default_factory=set)
    victims: list[str] = field(default_factory=list)
    topologies: Sequence[Json] = ()

    def any_pod(self, rng: random.Random) -> Key | None:
        """Some tenant's pod, or None if there is none."""
        return rng.choice(sorted(self.pods)) if self.pods else None


Author = Callable[[random.Random, int, Cast], list[Operation]]
"""Makes the next operations; empty if its idea does not apply now."""


def author(*ideas: tuple[int, Author]) -> Author:
    """Follows one of these ideas at a time, each with its weight."""
    makers, weights = [one for _, one in ideas], [weight for weight, _ in ideas]

    def operations(rng: random.Random, number: int, cast: Cast) -> list[Operation]:
        return rng.choices(makers, weights)[0](rng, number, cast)

    return operations
