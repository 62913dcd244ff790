"""The CPUs of containers without CPUs of their own: from a static kubelet's to ours, and back.

Does no I/O.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from typing import Any

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.cpuset import CpuSet
from numapin_api.quantity import plural
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_api.topology import Topology
from numapin_cli.inputs.policy_rules import refused_fields
from numapin_cli.what_if import foresee_from
from numapin_enforcer.node.kubelet_state import STATIC_CPUS, CpuState
from numapin_operator.nodes.decide import NodePicture


def in_force(picture: NodePicture, policy: CpuPolicySpec) -> NodeAssignmentSpec | None:
    """What the operator decides under an edited policy; None if it cannot be in force."""
    if any(True for _ in refused_fields(policy)):
        return None
    governing = picture.ranked[0]
    after = replace(governing, spec=policy, generation=governing.generation + 1)
    foreseen = foresee_from(replace(picture, ranked=(after, *picture.ranked[1:])))
    return None if foreseen.is_stalled else foreseen.spec


def pool_notes(
    picture: NodePicture, cpu: CpuState, spec: NodeAssignmentSpec, topology: Topology
) -> Iterator[str]:
    """How the CPUs of all other containers change, and what is wrong with the kubelet's state."""
    if spec.pools is None:
        return
    pins = cpu.policy == STATIC_CPUS and bool(cpu.known)
    before, shared = cpu.shared if pins else topology.online, spec.pools.shared
    yield f"shared CPUs: {before}" + (f", then {shared}" if before != shared else ", as before")
    if not pins:
        return
    yield from _contradictions(cpu, topology)
    unknown = topology.online - cpu.known
    if unknown and cpu.shared:
        yield from _unknown(picture, unknown, spec)
    if lost := spec.pools.reserved - shared - unknown:
        yield f"the policy keeps CPUs {lost} from all pods, the kubelet does not"


def _contradictions(cpu: CpuState, topology: Topology) -> Iterator[str]:
    """Why the kubelet does not start with its state, unknown CPUs aside.

    Source: Kubernetes v1.37, cpumanager, `staticPolicy.validateState`.
    """
    refused = "the kubelet does not start with this state"
    if not cpu.shared:
        yield f"defaultCpuSet is empty, and containers have CPUs: {refused}"
    if twice := cpu.shared & (cpu.of_pods | CpuSet.union(cpu.exclusive.values())):
        yield f"CPUs {twice} are in defaultCpuSet and given to containers: {refused}"
    if offline := cpu.known - topology.online:
        yield f"CPUs {offline} of the state are not online: {refused}"


def _unknown(picture: NodePicture, unknown: CpuSet, spec: NodeAssignmentSpec) -> Iterator[str]:
    """What CPUs are that the state does not name: strictly reserved, or online only since then.

    A strict reservation has as many CPUs as the Node keeps back, rounded up. Where that does not
    decide it, those that the policy reserves are taken for it.
    Source: Kubernetes v1.37, cpumanager, `NewStaticPolicy`.
    """
    assert spec.pools is not None
    assert picture.node is not None
    millis = picture.node.system.cpu_millis
    amount = f"{millis}m of CPU" if millis % 1000 else plural(millis // 1000, "CPU")
    late = "came online after it was written, and the kubelet does not start with it"
    unnamed = f"the state does not know CPUs {unknown}"
    strict = f"the kubelet keeps CPUs {unknown} from all pods (strict-cpu-reservation)"
    given = unknown & (spec.pools.shared | spec.exclusive_cpus)
    if millis and len(unknown) != ceil(millis / 1000):
        yield f"{unnamed}: the Node keeps back {amount}, so these {late}"
    elif unknown != spec.pools.reserved:
        reserving = _reserving(picture, unknown) if given else ""
        yield f"{unnamed}: they {late}; or {strict}{reserving}"
    elif given:
        yield f"{strict}, and the policy does not{_reserving(picture, unknown)}"


def _reserving(picture: NodePicture, cpus: CpuSet) -> str:
    """What in the policy keeps these CPUs from all pods; empty if nothing that can be in force."""
    before = picture.ranked[0].spec
    reserved = {"reserved": {"cpus": str(cpus), "strict": True}}
    text = f': reserved: {{cpus: "{cpus}", strict: true}}'
    for more, said in (({}, ""), ({"isolatedCPUs": "Ignore"}, " with isolatedCPUs: Ignore")):
        policy = CpuPolicySpec.model_validate(before.to_wire() | reserved | more)
        if in_force(picture, policy) is not None:
            return f"{text}{said} does"
    return ""


def kubelet_state(spec: NodeAssignmentSpec, topology: Topology) -> dict[str, Any]:
    """The `cpu_manager_state` with which a static kubelet starts where `spec` is in force.

    Without a checksum, which the kubelet accepts. The CPUs that it reserves must be in
    `defaultCpuSet`, or in nothing if it reserves them strictly.
    Source: Kubernetes v1.36, cpumanager, `CPUManagerCheckpointV2.VerifyChecksum`, `validateState`.
    """
    entries: dict[str, dict[str, str]] = {}
    for one in spec.containers:
        if one.exclusive:
            entries.setdefault(one.pod_uid, {})[one.container] = str(one.cpus)
    shared = topology.online - spec.exclusive_cpus
    if spec.pools is not None and spec.pools.reserved.isdisjoint(spec.pools.shared):
        shared -= spec.pools.reserved
    return {"policyName": "static", "defaultCpuSet": str(shared), "entries": entries}
