"""The status of a CpuPolicy."""

from typing import Annotated, Any, Literal

from pydantic import Field

from numapin_api.conditions.model import Condition
from numapin_api.meta.wire import WireModel, atomic_list, keyed_list


class StalledNode(WireModel):
    """One node on which the policy cannot be put in force."""

    node: str = Field(description="The name of the node.", max_length=253)
    reason: str = Field(description="The reason, as one CamelCase word.", max_length=1024)
    message: str = Field(default="", description="A human-readable explanation.", max_length=1024)


class PolicyConflict(WireModel):
    """Another policy that selects some of the same nodes and takes precedence there."""

    policy: str = Field(description="The policy in force on those nodes.", max_length=253)
    nodes: int = Field(ge=0, description="The number of nodes on which it takes precedence.")
    examples: tuple[Annotated[str, Field(max_length=253)], ...] = Field(
        default=(),
        description="The names of some of these nodes.",
        max_length=10,
        json_schema_extra=atomic_list(),
    )


class RolledOut(WireModel):
    """The newest generation of the policy that has reached every node, as release 0.1 wrote it."""

    generation: int = Field(ge=1, description="Its metadata.generation.")
    spec: dict[str, Any] = Field(
        description="Its spec. Nodes that wait for a later generation are planned by it.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )


class NodeGroup(WireModel):
    """Nodes of one shard on which the policy has come equally far, for the same reason."""

    progress: Literal["Done", "Waiting", "Failed", "Skipped"] = Field(
        description="How far the policy has come on them."
    )
    reason: str = Field(description="The reason, as one CamelCase word.", max_length=1024)
    nodes: int = Field(ge=0, description="The number of these nodes.")
    examples: tuple[Annotated[str, Field(max_length=253)], ...] = Field(
        default=(),
        description="The names of some of these nodes.",
        max_length=10,
        json_schema_extra=atomic_list(),
    )
    message: str = Field(
        default="", description="What is said about the first of them.", max_length=1024
    )


class PolicyShard(WireModel):
    """What one of several operators that share the nodes reports of its nodes.

    The sum of all shards is the policy's status. For the operators alone.
    """

    shard: int = Field(ge=0, le=63, description="The number of the shard.")
    of: int = Field(ge=2, le=64, description="Into how many shards the nodes are divided.")
    observed_generation: int = Field(
        ge=0, description="The metadata.generation that this was computed from."
    )
    governed: int = Field(ge=0, description="The number of nodes that the policy governs.")
    in_force: int = Field(ge=0, description="The number of these on which it is in force.")
    refused: int = Field(ge=0, description="The number of refused pods on them.")
    outdated: int = Field(ge=0, description="The number of outdated containers on them.")
    turns: int = Field(
        ge=0, description="How many of these nodes may change at the same time (spec.rollout)."
    )
    wanted: int = Field(ge=0, description="How many of them change, or wait for their turn.")
    halted: int = Field(ge=0, description="How many of them became stalled by their turn.")
    elsewhere: bool = Field(
        default=False,
        description="Whether the policy is in force on a node that another policy governs.",
    )
    groups: tuple[NodeGroup, ...] = Field(
        default=(),
        description="These nodes by phase and reason.",
        max_length=80,
        json_schema_extra=atomic_list(),
    )
    stalled: tuple[StalledNode, ...] = Field(
        default=(),
        description="The first stalled nodes by name.",
        max_length=20,
        json_schema_extra=atomic_list(),
    )
    conflicts: tuple[PolicyConflict, ...] = Field(
        default=(),
        description="Policies that take precedence on nodes that both select.",
        max_length=20,
        json_schema_extra=atomic_list(),
    )


class CpuPolicyStatus(WireModel):
    """The most recently observed state of the policy; written by the operator."""

    conditions: tuple[Condition, ...] = Field(
        default=(),
        description="The conditions Ready, Reconciling and Stalled.",
        max_length=16,
        json_schema_extra=keyed_list("type"),
    )
    observed_generation: int = Field(
        default=0, ge=0, description="The metadata.generation that this status was computed from."
    )
    nodes_selected: int = Field(
        default=0, ge=0, description="The number of nodes that nodeSelector or nodes matches."
    )
    nodes_in_force: int = Field(
        default=0,
        ge=0,
        description="The number of nodes whose enforcer has accepted this generation.",
    )
    nodes_stalled: int = Field(
        default=0,
        ge=0,
        description="The number of nodes on which the policy cannot be put in force without help.",
    )
    nodes_not_served: int = Field(
        default=0,
        ge=0,
        description="The number of nodes that are not waited for: NotReady, not Linux, or without "
        "an enforcer. They are part of nodesSelected, and of no other number.",
    )
    refused: int = Field(
        default=0,
        ge=0,
        description="The number of pods that were refused CPUs or memory on the nodes.",
    )
    outdated: int = Field(
        default=0,
        ge=0,
        description="The number of running containers that this generation would not place as "
        "they are. They keep their CPUs and memory until they end.",
    )
    stalled: tuple[StalledNode, ...] = Field(
        default=(),
        description="The first stalled nodes by name, with the reasons.",
        max_length=20,
        json_schema_extra=atomic_list(),
    )
    conflicts: tuple[PolicyConflict, ...] = Field(
        default=(),
        description="Policies that take precedence over this one on nodes that both select.",
        max_length=20,
        json_schema_extra=atomic_list(),
    )
    rolled_out: RolledOut | None = Field(
        default=None,
        description="Deprecated: read, and no longer written. What release 0.1 wrote in place of "
        "the ControllerRevision that currentRevision names.",
    )
    current_revision: str = Field(
        default="",
        description="currentRevision is the name of the ControllerRevision, in the operator's "
        "namespace, of the newest generation that has reached every node that the policy governs.",
        max_length=253,
    )
    shards: tuple[PolicyShard, ...] | None = Field(
        default=None,
        description="Of several operators that share the nodes: what each reports of its nodes. "
        "The other fields are the sums. Unset with one operator.",
        max_length=64,
        json_schema_extra=keyed_list("shard"),
    )
