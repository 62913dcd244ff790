"""What is known at the end of a pass besides the pass, as values. Does no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import NodeAssignmentStatus
from numapin_enforcer.assignment.either_form import Judged
from numapin_enforcer.cgroups.naming import CgroupNaming
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.status.in_force.exclusivity import NO_EVIDENCE, Evidence
from numapin_enforcer.status.in_force.thread_cpus import Intruder, confined
from numapin_enforcer.status.state import States, in_order


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the status is made of, besides the pass and what each part has to say.

    Attributes:
        content: the fields of the status that no pass fills.
        judged: what was made of the newest spec.
        evidence: what decides besides the cpusets whether a container is reported exclusive; not
            what `evidence_of` adds.
        running: ids of the containers that run, as the runtime listed them a minute ago at most,
            with namespace, pod and name.
        problems: what keeps the enforcer from being ready, by name; empty texts do not count.
    """

    content: NodeAssignmentStatus = field(default_factory=NodeAssignmentStatus)
    judged: Judged = field(default_factory=Judged)
    evidence: Evidence = NO_EVIDENCE
    running: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)


def evidence_of(
    one: Pass, facts: Facts, states: States, tree: Tree, naming: CgroupNaming
) -> Evidence:
    """What decides besides the cpusets of `tree` whether a container is reported exclusive."""
    stale_cpus: dict[str, CpuSet] = {}
    for state in in_order(states):
        stale_cpus |= state.stale_cpus
    names = facts.running
    return replace(
        facts.evidence,
        stale_cpus=stale_cpus,
        intruders=tuple(Intruder.of(wide, naming, names) for wide in one.wide),
        confined=tuple(confined(one.inherited, tree, naming, names, one.topology)),
    )
