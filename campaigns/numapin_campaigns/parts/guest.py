"""Numapin's parts on a node in a virtual machine: the operator on the host, the others in it."""

from dataclasses import dataclass, field

from numapin_campaigns.parts.all_parts import LOOK_SECONDS, Parts
from numapin_campaigns.parts.installation import probe
from numapin_campaigns.parts.part import (
    API_SERVER,
    ENFORCER,
    KUBELET,
    OPERATOR,
    STANDBY,
    Part,
)
from numapin_enforcer.standby.fencing import STANDING_BY
from numapin_lab.node.agents import Agent
from numapin_lab.vm.node import GuestDaemon, guest_kubelet, guest_standby
from numapin_lab.vm.running_lab import RunningVmLab


@dataclass
class GuestStandby(Part):
    """It is ready when it has logged once more that it stands by than before it was started."""

    daemon: GuestDaemon
    _before: int = field(default=0, init=False)

    def start(self) -> bool:
        """Count what it has logged, and start it."""
        self._before = self._logged()
        return super().start()

    def ready(self) -> bool:
        """Whether it stands by."""
        return self._logged() > self._before

    def _logged(self) -> int:
        found = self.daemon.machine.run_script(f"grep -c '{STANDING_BY}' {self.daemon.log}")
        return int(found.output) if found.output.strip().isdigit() else 0


def agents(lab: RunningVmLab, operator: Agent) -> dict[str, Part]:
    """Operator, enforcer and standby; it asks seldom whether they are ready."""
    return {
        OPERATOR: _agent(operator),
        ENFORCER: _agent(lab.agent(ENFORCER)),
        STANDBY: GuestStandby(guest_standby(lab.cluster.vm), poll_seconds=LOOK_SECONDS),
    }


def _agent(agent: Agent) -> Part:
    return Part(
        agent.daemon,
        lambda _: agent.ready(),
        poll_seconds=LOOK_SECONDS,
        says=lambda: probe(agent.port, "readyz").decode(),
    )


class GuestParts(Parts):
    """Every part of a lab with a virtual node, with a standby in it."""

    def __init__(self, lab: RunningVmLab, operator: Agent) -> None:
        self._lab, kubelet = lab, guest_kubelet(lab.cluster.vm)
        api_server, is_ready = lab.cluster.plane.apiserver, lab.cluster.api.ready
        super().__init__(
            {
                **agents(lab, operator),
                KUBELET: Part(kubelet, lambda _: kubelet.answers(), poll_seconds=LOOK_SECONDS),
                API_SERVER: Part(api_server, lambda _: is_ready(), poll_seconds=LOOK_SECONDS),
            }
        )

    def start_standby(self) -> None:
        """Start the standby, which a lab with a virtual node does not have; returns when ready."""
        self[STANDBY].start()
        self[STANDBY].wait_ready(self._lab.patience_seconds)

    def can_notice(self) -> bool:
        """Whether the standby can notice that the enforcer is stopped: both are ready."""
        return not self.is_starting(ENFORCER) and self[STANDBY].ready()

    def wait_node_ready(self) -> None:
        """Return when every part that was started is ready, and the node is.

        Raises:
            LabError: a part has ended, or is not ready in time.
        """
        self.wait_all_ready(self._lab.patience_seconds)
        self._lab.cluster.vm.wait_ready()
