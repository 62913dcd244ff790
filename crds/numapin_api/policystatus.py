"""What the operator reports of a CpuPolicy."""

from typing import Annotated

from pydantic import Field

from numapin_api.conditions import Condition
from numapin_api.wire import WireModel, atomic_list, keyed_list


class StalledNode(WireModel):
    """One node on which a policy is not in force, and why."""

    node: str = Field(description="The node's name.", max_length=253)
    reason: str = Field(description="Why, as one CamelCase word.", max_length=1024)
    message: str = Field(default="", description="The same for people.", max_length=1024)


class PolicyConflict(WireModel):
    """Another policy that selects some of the same nodes, and wins there."""

    policy: str = Field(description="The policy in force on those nodes.", max_length=253)
    nodes: int = Field(ge=0, description="On how many nodes it wins.")
    examples: tuple[Annotated[str, Field(max_length=253)], ...] = Field(
        default=(),
        description="Some of those nodes' names.",
        max_length=10,
        json_schema_extra=atomic_list(),
    )


class CpuPolicyStatus(WireModel):
    """What came of the policy; written by the operator."""

    observed_generation: int = Field(
        default=0, ge=0, description="The generation of the spec that this status tells of."
    )
    nodes_selected: int = Field(default=0, ge=0, description="Nodes that the selector matches.")
    nodes_in_force: int = Field(
        default=0, ge=0, description="Nodes whose enforcer reports this policy in force."
    )
    nodes_stalled: int = Field(
        default=0,
        ge=0,
        description="Nodes on which it cannot be put in force until something is mended.",
    )
    stalled: tuple[StalledNode, ...] = Field(
        default=(),
        description="The stalled nodes by name, the first few.",
        max_length=20,
        json_schema_extra=atomic_list(),
    )
    conflicts: tuple[PolicyConflict, ...] = Field(
        default=(),
        description="Policies that win over this one on nodes that both select.",
        max_length=20,
        json_schema_extra=atomic_list(),
    )
    conditions: tuple[Condition, ...] = Field(
        default=(),
        description="Ready, Reconciling and Stalled.",
        max_length=16,
        json_schema_extra=keyed_list("type"),
    )
