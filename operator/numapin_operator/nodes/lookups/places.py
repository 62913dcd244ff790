"""Reads where the devices of ResourceClaims are, from the ResourceSlices of their drivers."""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from numapin_client.errors import ClientError, ForbiddenError, NotFoundError
from numapin_daemon.clock import Clock
from numapin_daemon.logs.log_limit import LogLimit
from numapin_operator.cluster import Cluster
from numapin_operator.observe.resource_slices import NO_PLACES, DeviceId, Places

AGAIN_SECONDS: Final = 1.0
LONGEST_AGAIN_SECONDS: Final = 300.0
"""When a device is looked for again that no slice has: the first time, doubled each time after
that, and at most. It is looked for at once when a pod that has it may start its containers."""

MOST_LISTS: Final = 4
"""Drivers whose slices are listed for one plan; the devices of others wait for the next one."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Missing:
    """How often a device was looked for, when it is again, and whether a pod could start."""

    count: int
    again_at: float
    urgent: bool


@dataclass(slots=True)
class _OfNode:
    found: dict[DeviceId, tuple[str, ...]] = field(default_factory=dict)
    missing: dict[DeviceId, _Missing] = field(default_factory=dict)
    again_at: float | None = None


class DevicePlaces:
    """Where the devices are that pods of each node wait for.

    A driver publishes its devices before a scheduler can allocate one, and a device does not move,
    so each is read once for the pods that have it. A driver that is started again may have no slice
    for a while: its pods wait as for devices of the kubelet. Without the right to read slices, and
    without their kind, nobody waits.
    """

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        """Know nothing yet."""
        self._cluster, self._clock = cluster, clock
        self._nodes: dict[str, _OfNode] = {}
        self._lines = LogLimit(clock=clock)

    async def read(self, node: str, wanted: Mapping[DeviceId, bool]) -> bool:
        """Look for devices that are not known; whether any was looked for.

        Args:
            node: the node that they are on.
            wanted: all devices that pods of the node have or wait for, and whether it is urgent.
        """
        if not wanted:
            self._nodes.pop(node, None)
            return False
        known = self._nodes.setdefault(node, _OfNode())
        known.found = {one: at for one, at in known.found.items() if one in wanted}
        known.missing = {one: at for one, at in known.missing.items() if one in wanted}
        due: dict[str, list[DeviceId]] = {}
        for one, urgent in wanted.items():
            if one not in known.found and self._is_due(known.missing.get(one), urgent=urgent):
                due.setdefault(one.driver, []).append(one)
        for devices in list(due.values())[:MOST_LISTS]:
            await self._read_driver(node, known, devices, wanted)
        times = [one.again_at for one in known.missing.values()]
        times += [self._clock.monotonic()] if len(due) > MOST_LISTS else []
        known.again_at = min(times, default=None)
        return bool(due)

    def of(self, node: str) -> Places:
        """What is known of a node's devices."""
        return self._nodes[node].found if node in self._nodes else NO_PLACES

    def again_at(self, node: str) -> float | None:
        """When to look again, by the monotonic clock; None if nothing is missing."""
        return self._nodes[node].again_at if node in self._nodes else None

    def _is_due(self, missing: _Missing | None, *, urgent: bool) -> bool:
        if missing is None or (urgent and not missing.urgent):
            return True
        return missing.again_at <= self._clock.monotonic()

    async def _read_driver(
        self,
        node: str,
        known: _OfNode,
        devices: Collection[DeviceId],
        wanted: Mapping[DeviceId, bool],
    ) -> None:
        """Read the slices of one driver."""
        why = "no ResourceSlice has it"
        try:
            known.found |= await self._cluster.read_places(node, devices)
        except (ForbiddenError, NotFoundError) as error:
            known.found |= dict.fromkeys(devices, ())
            self._warn(node, devices, str(error))
            return
        except ClientError as error:
            why = str(error)
        missing = [one for one in devices if one not in known.found]
        for one in devices:
            before = known.missing.pop(one, None)
            if one in missing:
                known.missing[one] = self._later(before, urgent=wanted[one])
        self._warn(node, missing, why)

    def _later(self, before: _Missing | None, *, urgent: bool) -> _Missing:
        count = 0 if before is None or (urgent and not before.urgent) else before.count + 1
        delay_seconds = min(AGAIN_SECONDS * 2.0 ** min(count, 30), LONGEST_AGAIN_SECONDS)
        return _Missing(count, self._clock.monotonic() + delay_seconds, urgent)

    def _warn(self, node: str, devices: Iterable[DeviceId], why: str) -> None:
        """Log once for each driver and node that its devices are not known."""
        for one in list(devices)[:1]:
            if (more := self._lines.admit(f"{node}/{one.driver}")) is not None:
                about = {"node": node, "device": "/".join(one), "error": why}
                _log.warning("cannot read where a claimed device is", extra={**about, **more})
