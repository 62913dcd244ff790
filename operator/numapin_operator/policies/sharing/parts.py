"""What each shard reports of a policy's nodes, and the sum of it. Does no I/O."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from numapin_api.conditions.reasons import Reason
from numapin_api.status.policy import CpuPolicyStatus, PolicyConflict, PolicyShard, StalledNode
from numapin_api.status.policy import NodeGroup as WireGroup
from numapin_operator.policies.status import (
    CONFLICTS_NAMED,
    EXAMPLES_NAMED,
    REASONS_NAMED,
    STALLED_NAMED,
    NodeGroup,
    NodeOutcome,
    Phase,
    PolicyNodes,
)
from numapin_operator.policies.tally import NOT_PLANNED

_WIRE: Final[Mapping[Phase, Literal["Done", "Waiting", "Failed", "Skipped"]]] = {
    Phase.IN_FORCE: "Done",
    Phase.UNDER_WAY: "Waiting",
    Phase.STALLED: "Failed",
    Phase.NOT_SERVED: "Skipped",
}


def parts_of(status: CpuPolicyStatus, shards: int) -> dict[int, PolicyShard]:
    """The parts of a status by shard; those of another division count no more."""
    return {
        one.shard: one for one in status.shards or () if one.of == shards and one.shard < shards
    }


def part_of(nodes: PolicyNodes, shard: int, shards: int, generation: int) -> PolicyShard:
    """How far a generation of a policy has come on a shard's nodes; no turns are claimed."""
    groups = {
        Phase.IN_FORCE: nodes.remarks,
        Phase.UNDER_WAY: nodes.under_way,
        Phase.STALLED: nodes.stalled,
        Phase.NOT_SERVED: nodes.not_served,
    }
    return PolicyShard(
        shard=shard,
        of=shards,
        observed_generation=generation,
        turns=0,
        wanted=0,
        halted=0,
        governed=nodes.governed,
        in_force=nodes.in_force,
        refused=nodes.refused,
        outdated=nodes.outdated,
        groups=tuple(
            WireGroup(
                progress=_WIRE[phase],
                reason=one.common,
                nodes=one.nodes,
                examples=one.examples,
                message=one.message,
            )
            for phase, found in groups.items()
            for one in found[:REASONS_NAMED]
        ),
        stalled=tuple(
            StalledNode(node=one.node, reason=one.reason, message=one.message)
            for one in nodes.stalled_nodes
        ),
        conflicts=tuple(
            PolicyConflict(policy=one.common, nodes=one.nodes, examples=one.examples)
            for one in nodes.overruled[:CONFLICTS_NAMED]
        ),
    )


def summed(parts: Mapping[int, PolicyShard], shards: int, generation: int) -> PolicyNodes:
    """The nodes of all shards. A shard that has not reported on this generation has all to do."""
    current = [one for one in parts.values() if one.observed_generation == generation]
    return PolicyNodes(
        governed=sum(one.governed for one in parts.values()),
        in_force=sum(one.in_force for one in current),
        remarks=_groups(current, Phase.IN_FORCE),
        under_way=(*_groups(current, Phase.UNDER_WAY), *_unreported(parts, shards, generation)),
        stalled=_groups(current, Phase.STALLED),
        stalled_nodes=_first_stalled(current),
        overruled=_overruled(parts.values()),
        not_served=_groups(current, Phase.NOT_SERVED),
        refused=sum(one.refused for one in current),
        outdated=sum(one.outdated for one in current),
    )


def _groups(parts: Iterable[PolicyShard], phase: Phase) -> tuple[NodeGroup, ...]:
    """The nodes of all shards in one phase by reason, the most frequent first."""
    found: dict[str, list[WireGroup]] = {}
    for part in parts:
        for group in part.groups:
            if group.progress == _WIRE[phase]:
                found.setdefault(group.reason, []).append(group)
    merged = (_merged(reason, groups) for reason, groups in found.items())
    return tuple(sorted(merged, key=lambda one: (-one.nodes, one.common)))


def _merged(reason: str, groups: Sequence[WireGroup]) -> NodeGroup:
    first = min(groups, key=lambda one: one.examples)
    examples = sorted(name for one in groups for name in one.examples)[:EXAMPLES_NAMED]
    return NodeGroup(reason, sum(one.nodes for one in groups), tuple(examples), first.message)


def _unreported(
    parts: Mapping[int, PolicyShard], shards: int, generation: int
) -> tuple[NodeGroup, ...]:
    """One group for all nodes of shards that have yet to report; there may be none of them."""
    reported = {shard for shard, one in parts.items() if one.observed_generation == generation}
    late = sorted(set(range(shards)) - reported)
    if not late:
        return ()
    nodes = sum(parts[number].governed for number in late if number in parts)
    names = ", ".join(map(str, late))
    return (NodeGroup(Reason.APPLYING, nodes, (), f"{NOT_PLANNED}: shards {names} of {shards}"),)


def _first_stalled(parts: Iterable[PolicyShard]) -> tuple[NodeOutcome, ...]:
    named = sorted((one.node, one.reason, one.message) for part in parts for one in part.stalled)
    return tuple(
        NodeOutcome(node, "", 0, Phase.STALLED, reason, message)
        for node, reason, message in named[:STALLED_NAMED]
    )


def _overruled(parts: Iterable[PolicyShard]) -> tuple[NodeGroup, ...]:
    found: dict[str, list[PolicyConflict]] = {}
    for part in parts:
        for one in part.conflicts:
            found.setdefault(one.policy, []).append(one)
    return tuple(
        NodeGroup(
            winner,
            sum(one.nodes for one in lost),
            tuple(sorted(name for one in lost for name in one.examples)[:EXAMPLES_NAMED]),
        )
        for winner, lost in sorted(found.items())
    )
