"""A scenario answered by the operator's own decision, step by step."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from numapin_api.conditions.reasons import Reason
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_api.status.policy import CpuPolicyStatus
from numapin_cli.inputs.described_cluster import unwritten_assignment
from numapin_cli.inputs.policy_rules import refused_fields
from numapin_cli.inputs.scenario import Scenario, Step
from numapin_cli.kubelet.devices import KubeletDevices, devices_of
from numapin_cli.what_if import followed
from numapin_client.resources import Key
from numapin_operator.nodes.decide import Decision, Write, decide
from numapin_operator.nodes.picture import picture_of
from numapin_operator.observe.assignments.hardware import Hardware
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.records import PolicyView
from numapin_operator.placement import PlacementError, PodView, resolve
from numapin_operator.policies.status import Phase

Json = dict[str, Any]


def answer_as_operator(scenario: Scenario) -> Json:
    """The answer to a scenario; if the policy cannot work on the machine, the reason."""
    for wrong in refused_fields(scenario.policy):
        return {"name": scenario.name, "error": f"{Reason.INVALID_POLICY}: {wrong}"}
    played = PlayedNode(scenario)
    first = played.decide()
    if first.outcome is not None and first.outcome.phase is Phase.STALLED:
        return {"name": scenario.name, "error": f"{first.outcome.reason}: {first.outcome.message}"}
    return {"name": scenario.name, "steps": list(played.steps())}


class PlayedNode:
    """One node, its policy and its assignment, which follows each decision.

    Attributes:
        name: the node's name.
        state: the cluster without the assignment.
        assignment: the node's assignment as it is now.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self.name = scenario.node.name
        self.state = ClusterState(lambda *_, **__: None)
        self.state.put_node(scenario.node)
        self.state.put_policy_view(_policy(scenario))
        for name, labels in scenario.namespaces.items():
            self.state.put_namespace(name, labels)
        self.assignment = unwritten_assignment(self.name, Hardware(scenario.topology, b""))
        self._kubelet: KubeletDevices | None = None

    def decide(self) -> Decision:
        """Decide, write, and have the enforcer report that all is in force and every pod runs."""
        picture = replace(picture_of(self.state, self.name), assignment=self.assignment)
        decision = decide(picture)
        if decision.write is not Write.NOTHING:
            self.assignment = followed(picture, decision) or self.assignment
        return decision

    def steps(self) -> Iterator[Json]:
        """The answer to each step, as soon as it has been made."""
        devices = self._scenario.devices
        if devices:
            policy = resolve(self._scenario.topology, self._scenario.policy)
            self._kubelet = KubeletDevices(policy, devices)
        for number, step in enumerate(self._scenario.steps):
            yield self._step(step, number) | {"shared": self._shared()}

    def _step(self, step: Step, number: int) -> Json:
        """One step; a pod that the kubelet refuses for its devices is not on the node."""
        has: Json = {}
        if step.add is None:
            self.state.drop_pod(Key(step.remove), self.name)
            if self._kubelet is not None:
                self._kubelet.release(step.remove)
        else:
            if self._kubelet is not None:
                try:
                    has = devices_of(self._kubelet.admit(step.add))
                except PlacementError as refused:
                    return {"admitted": False, "reason": refused.reason, "message": str(refused)}
            self.state.put_pod(Key(step.add.uid), self._bound(step.add, number))
        self._report_running()
        decision = self.decide()
        return {} if step.add is None else self._added(step.add, decision, has)

    def _bound(self, pod: PodView, number: int) -> PodView:
        return replace(pod, node=self.name, bound=f"~{number:09}")

    def _report_running(self) -> None:
        running = tuple(pod.uid for pod in self.state.pods_on(self.name))
        devices = self._kubelet.reported() if self._kubelet is not None else None
        status = replace(self.assignment.status, running=running, devices=devices)
        self.assignment = replace(self.assignment, status=status)

    def _added(self, pod: PodView, decision: Decision, devices: Json) -> Json:
        outcome = decision.outcome
        if outcome is not None and outcome.phase is Phase.STALLED:
            return {"admitted": False, "reason": outcome.reason, "message": outcome.message}
        for refusal in self.assignment.spec.refused:
            if refusal.pod_uid == pod.uid:
                return {"admitted": False, "reason": refusal.reason, "message": refusal.message}
        return {"admitted": True} | _containers(self.assignment.spec, pod.uid, devices)

    def _shared(self) -> str:
        pools = self.assignment.spec.pools
        return str(pools.shared if pools else self._scenario.topology.online)


def _policy(scenario: Scenario) -> PolicyView:
    return PolicyView(
        name="policy",
        uid="policy",
        version=1,
        generation=1,
        created="",
        deleting=False,
        spec=scenario.policy,
        status=CpuPolicyStatus(),
    )


def _containers(spec: NodeAssignmentSpec, uid: str, devices: Json) -> Json:
    """CPUs and memory of each container that has any, and its devices."""
    containers: Json = {name: {"cpus": "", "mems": "", "memory": []} for name in devices}
    containers |= {
        entry.container: {
            "cpus": str(entry.cpus),
            "mems": str(entry.mems),
            "memory": [block.to_wire() for block in entry.memory],
        }
        for entry in spec.containers
        if entry.pod_uid == uid
    }
    for name, each in devices.items():
        containers[name] = containers[name] | {"devices": each}
    return {"containers": containers} if containers else {}
