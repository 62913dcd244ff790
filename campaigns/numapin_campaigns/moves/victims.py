"""Kill, stop and start the parts of a lab with a virtual node, and record how long each was away.

Nothing here waits until a part is ready, so that others can be hit meanwhile; except `wait_ready`.
"""

import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from numapin_campaigns.moves.plan import API_SERVER, ENFORCER, KUBELET, OPERATOR, STANDBY
from numapin_campaigns.moves.schedule import Action, Do
from numapin_campaigns.observation.samples import Downtime
from numapin_campaigns.steps.passing import Parts
from numapin_enforcer.standby.fencing import STANDING_BY
from numapin_lab.errors import LabError
from numapin_lab.node.agents import Agent
from numapin_lab.processes.daemons import wait_until
from numapin_lab.vm.node import guest_kubelet, guest_standby
from numapin_lab.vm.running_lab import RunningVmLab

LOOK_SECONDS: Final = 3.0
"""How often to ask whether those that start are ready: each question loads the guest."""


class Victims:
    """The parts that a run hits."""

    def __init__(self, lab: RunningVmLab, operator: Agent) -> None:
        self._lab = lab
        self._kubelet = guest_kubelet(lab.cluster.vm)
        self._standby = guest_standby(lab.cluster.vm)
        others = {STANDBY: self._standby, KUBELET: self._kubelet}
        self.parts = Parts(lab, {**others, API_SERVER: lab.cluster.plane.apiserver}, operator)
        self._ready: dict[str, Callable[[], bool]] = {
            OPERATOR: operator.ready,
            ENFORCER: lab.agent(ENFORCER).ready,
            STANDBY: self.stands_by,
            KUBELET: self._kubelet.answers,
            API_SERVER: lab.cluster.api.ready,
        }
        self._hit: dict[str, Downtime] = {}
        self._starting: set[str] = set()
        self._stood_by = 0
        self._looked_at = 0.0
        self.downtimes: list[Downtime] = []
        self.kills: Counter[str] = Counter()

    def start_standby(self) -> None:
        """Start the standby, which a lab with a virtual node does not have; returns when ready."""
        self._standby.start()
        seconds = self._lab.patience_seconds
        wait_until(self.stands_by, "the standby", seconds, self._standby, LOOK_SECONDS)

    def stands_by(self) -> bool:
        """Whether the standby is ready."""
        return self._times_stood_by() > self._stood_by

    def can_notice(self) -> bool:
        """Whether the standby can notice that the enforcer is stopped: both are ready."""
        return ENFORCER not in self._starting and self.stands_by()

    def act(self, action: Action) -> None:
        """Do it; returns when it is done, though not until a part is ready."""
        part, now = action.part, time.monotonic()
        if action.do is Do.START:
            if part == STANDBY:
                self._stood_by = self._times_stood_by()
            self.parts.start(part)
            self._starting.add(part)
            return
        stops = action.do is Do.STOP
        self._starting.discard(part)
        self._hit.setdefault(part, Downtime(part, now, now, stopped=stops))
        if stops:
            self.parts.hold(part)
            return
        self.kills[part] += 1
        self.parts.kill(part)

    def look(self) -> None:
        """Notice which of those that start are ready."""
        now = time.monotonic()
        if self._starting and now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            for part in list(self._starting):
                if self._ready[part]():
                    self._complete(part)

    def wait_ready(self) -> None:
        """Return when every part is ready and the node is Ready.

        Raises:
            LabError: a part has ended, or is not ready in time.
        """
        for part in sorted(self._starting):
            daemon = self.parts.daemon(part)
            seconds = self._lab.patience_seconds
            wait_until(self._ready[part], part, seconds, daemon, LOOK_SECONDS)
            self._complete(part)
        for part in self._ready:
            daemon = self.parts.daemon(part)
            if daemon.pid() is None:
                raise daemon.failure(f"{part} ended without being killed")
        self._lab.cluster.vm.wait_ready()

    def _complete(self, part: str) -> None:
        hit = self._hit.pop(part, None)
        self._starting.discard(part)
        if hit is None:
            raise LabError(f"{part} was started without being killed or stopped")
        ready_at = time.monotonic()
        self.downtimes.append(Downtime(part, hit.killed_at, ready_at, hit.stopped))

    def _times_stood_by(self) -> int:
        found = self._lab.machine.run_script(f"grep -c '{STANDING_BY}' {self._standby.log}")
        return int(found.output) if found.output.strip().isdigit() else 0
