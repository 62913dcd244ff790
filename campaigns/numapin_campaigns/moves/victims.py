"""The parts that a run with moves hits. Nothing waits until one is ready, so others can be hit."""

from numapin_campaigns.moves.schedule import Action, Do
from numapin_campaigns.parts.all_parts import Parts
from numapin_campaigns.parts.guest import agents
from numapin_campaigns.parts.part import API_SERVER, ENFORCER, KUBELET, STANDBY, Part
from numapin_lab.node.agents import Agent
from numapin_lab.vm.node import guest_kubelet
from numapin_lab.vm.running_lab import RunningVmLab

LOOK_SECONDS = 3.0


class Victims:
    """The parts of a lab with a virtual node, with a standby in it."""

    def __init__(self, lab: RunningVmLab, operator: Agent) -> None:
        self._lab = lab
        kubelet = guest_kubelet(lab.cluster.vm)
        api_server = lab.cluster.plane.apiserver
        self.parts = Parts(
            {
                **agents(lab, operator),
                KUBELET: Part(kubelet, lambda _: kubelet.answers(), poll_seconds=LOOK_SECONDS),
                API_SERVER: Part(
                    api_server, lambda _: lab.cluster.api.ready(), poll_seconds=LOOK_SECONDS
                ),
            }
        )

    def start_standby(self) -> None:
        """Start the standby, which a lab with a virtual node does not have; returns when ready."""
        self.parts[STANDBY].start()
        self.parts[STANDBY].wait_ready(self._lab.patience_seconds)

    def can_notice(self) -> bool:
        """Whether the standby can notice that the enforcer is stopped: both are ready."""
        return not self.parts.is_starting(ENFORCER) and self.parts[STANDBY].ready()

    def act(self, action: Action) -> None:
        """Do it; returns when it is done, though not until a part is ready."""
        do = {Do.KILL: self.parts.kill, Do.STOP: self.parts.stop, Do.START: self.parts.start}
        do[action.do](action.part)

    def wait_ready(self) -> None:
        """Return when every part is ready and the node is Ready.

        Raises:
            LabError: a part has ended, or is not ready in time.
        """
        self.parts.wait_all_ready(self._lab.patience_seconds)
        self._lab.cluster.vm.wait_ready()
