"""Answers the runtime before it makes a container: with its sets, once they may be its own."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from numapin_api.schema.plain import ContainerAssignment
from numapin_daemon.clock import Clock, SystemClock
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.kubepods.finder import KubepodsFinder
from numapin_enforcer.cgroups.naming import CgroupNaming
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.plan.desired import Rules
from numapin_enforcer.runtime.container_names import ContainerNames
from numapin_enforcer.runtime.interface import ContainerState, RuntimeContainer
from numapin_enforcer.runtime.nri.values import NriContainer, RuntimeTimeouts, Sets
from numapin_enforcer.start_gate.births import PINNED, SHARED, born_with, pod_cgroup
from numapin_enforcer.start_gate.born_pinned import BornPinned
from numapin_enforcer.start_gate.waited_for import is_decided, is_waited_for

REQUEST_SECONDS: Final = 2.0
"""How long a runtime waits for an answer that does not say so.

Source: nri, pkg/adaptation/plugin.go, `DefaultPluginRequestTimeout`.
"""

MARGIN_SECONDS: Final = 0.5
"""How much earlier than the runtime's own timeout an answer is given."""

SETTLE_SECONDS: Final = 0.2
"""How long a container that has an assignment, and not its sets yet, is kept from starting."""

START_SECONDS: Final = 120.0
"""How long a container may have no cgroup after it was made: others start before it.

Source: kubelet, `runtimeRequestTimeout`.
"""


@dataclass(eq=False)
class Gate:
    """Lets the runtime wait for the assignment of a pod.

    The runtime asks about one container after the other, and makes no other call meanwhile. So if
    one has waited in vain, none waits until the operator has written again: an operator that does
    not answer costs a node one wait.

    Attributes:
        pods: has the cgroups.
        names: learns what each container is before it has a cgroup.
        born: which containers had their sets before their first process ran.
        wake: set to have a pass made.
        on_pod: is told the UID of a pod, and its namespace and name.
        starts: how many containers with an assignment, or that waited for one, began pinned or not.
    """

    pods: KubepodsFinder
    names: ContainerNames
    born: BornPinned
    wake: asyncio.Event
    clock: Clock = field(default_factory=SystemClock)
    on_pod: Callable[[str, str], object] = field(default=lambda *_: None, init=False)
    starts: Counter[str] = field(default_factory=Counter, init=False)
    _pass: Pass | None = field(default=None, init=False)
    _rules: tuple[tuple[object, object], Rules] | None = field(default=None, init=False)
    _next_pass: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _vain: tuple[int, object] | None = field(default=None, init=False)
    """The newest assignment when a container had waited in vain."""
    _most_seconds: float = field(default=0.0, init=False)
    _made: dict[str, float] = field(default_factory=dict, init=False)
    """When each container was made that has not been started, by id."""

    def passed(self, one: Pass) -> None:
        """A pass has ended: those who wait may have their answer."""
        self._pass = replace(one, body=None)
        if self._vain is not None and not self._is_in_vain(one):
            self._vain = None
        passed, self._next_pass = self._next_pass, asyncio.Event()
        passed.set()

    @property
    def is_in_vain(self) -> bool:
        """Whether no container waits because the operator did not answer for the last one."""
        return self._vain is not None

    def starting(self) -> frozenset[str]:
        """Ids of the containers whose first process does not run yet."""
        return frozenset(self._made)

    def forget_except(self, ids: Iterable[str]) -> None:
        """Drop the containers that have no cgroup any more, or get none in time."""
        known, since = frozenset(ids), self.clock.monotonic() - START_SECONDS
        self.born.forget_except(known)
        self._made = {one: at for one, at in self._made.items() if one in known or at > since}

    def registered(self, about: RuntimeTimeouts) -> None:
        """The runtime asks from now on."""
        self._made.clear()
        limit_seconds = about.request_seconds or REQUEST_SECONDS
        self._most_seconds = max(limit_seconds / 2, limit_seconds - MARGIN_SECONDS)

    async def create(self, container: NriContainer) -> Sets | None:
        """What a container is made with; None to leave it as it is.

        CRI-O has no name of a container without the kubelet's labels; an empty one is a sandbox's.
        """
        if container.pod_uid and container.pod:
            self.on_pod(container.pod_uid, f"{container.namespace}/{container.pod}")
        if container.name:
            learned = RuntimeContainer(container.id, container.name, ContainerState.CREATED)
            self.names.learn((learned,))
        self._made[container.id] = self.clock.monotonic()
        until_seconds = self.clock.monotonic() + self._wait_seconds()
        while (one := self._pass) is not None and self._is_closed(one, container):
            line = _line(one, container)
            if line is not None and (sets := self._sets(one, line)) is not None:
                return sets
            left_seconds = until_seconds - self.clock.monotonic()
            if left_seconds <= 0 or self._vain is not None:
                if line is None:
                    self._vain = (one.generation, one.spec)
                return None
            await self.clock.wait(self._next_pass, left_seconds)
        return None

    async def start(self, container: NriContainer) -> None:
        """The container has its cgroup: note whether it has its sets, of which it may lack some."""
        until_seconds = self.clock.monotonic() + SETTLE_SECONDS
        while (one := self._pass) is not None and (line := _line(one, container)) is not None:
            if self._has_sets(one, line, container.id):
                self.born.add(container.id)
                break
            left_seconds = until_seconds - self.clock.monotonic()
            if left_seconds <= 0:
                break
            self.wake.set()
            await self.clock.wait(self._next_pass, left_seconds)
        self._made.pop(container.id, None)
        if container.id in self.born.ids:
            self.starts[PINNED] += 1
        elif one is not None and (line is not None or self._is_closed(one, container)):
            self.starts[SHARED] += 1

    def _wait_seconds(self) -> float:
        gate = _gate(self._pass)
        return min(gate["timeoutMilliseconds"] / 1000, self._most_seconds) if gate else 0.0

    def _is_closed(self, one: Pass, container: NriContainer) -> bool:
        """Whether a container must be answered with sets, or may have to be."""
        gate, spec, naming = _gate(one), one.spec, one.naming
        if gate is None or spec is None or naming is None or container.cpus or container.mems:
            return False
        line = _line(one, container)
        if line is not None:
            return not line.claimed
        return not is_decided(spec, container.pod_uid) and is_waited_for(gate, container, naming)

    def _is_in_vain(self, one: Pass) -> bool:
        assert self._vain is not None
        return self._vain[0] == one.generation and self._vain[1] is one.spec

    def _sets(self, one: Pass, line: ContainerAssignment) -> Sets | None:
        """The sets of a container; None while it may not have them."""
        tree, naming = one.result.tree, one.naming
        if tree is None or naming is None or one.enforced is None:
            return None
        rules = self._rules_of(one, naming)
        found = born_with(line, rules, tree, one.result.desired, naming)
        if found is None:
            return None
        return Sets(found.cpus, found.mems) if line.cpus else Sets(mems=found.mems)

    def _has_sets(self, one: Pass, line: ContainerAssignment, id_: str) -> bool:
        """Whether the kernel has what the spec says of a container, read now."""
        tree, naming, pods = one.result.tree, one.naming, self.pods.tree
        if tree is None or naming is None or pods is None:
            return False
        pod = pod_cgroup(tree, naming, line.pod_uid)
        wanted = self._rules_of(one, naming).assigned(line)
        for path in naming.container_paths(pod, id_) if pod else ():
            with suppress(CgroupError):
                found = pods.files.read_one(path)
                has_mems = not wanted.mems or found.effective_mems == wanted.mems
                is_own = wanted.exclusive is line.exclusive
                return is_own and has_mems and found.effective_cpus == wanted.cpus
        return False

    def _rules_of(self, one: Pass, naming: CgroupNaming) -> Rules:
        assert one.spec is not None
        key = (one.spec, one.topology)
        if self._rules is None or any(a is not b for a, b in zip(self._rules[0], key, strict=True)):
            self._rules = key, Rules(one.spec, naming, one.topology)
        return self._rules[1]


def _gate(one: Pass | None) -> Mapping[str, Any] | None:
    """The gate of the spec that is enforced; None if there is none."""
    if one is None or one.spec is None or not one.enforces or one.conflict:
        return None
    return one.spec.start_gate


def _line(one: Pass, container: NriContainer) -> ContainerAssignment | None:
    """What the spec says of a container."""
    key = (container.pod_uid, container.name)
    listed = one.spec.containers if one.spec is not None else ()
    return next((line for line in listed if line.key == key), None)


def closed_by(one: Pass) -> bool:
    """Whether containers of this node wait for their assignment."""
    return _gate(one) is not None


def ids_in_force(
    one: Pass, found: Iterable[tuple[str, str]], names: Mapping[str, str]
) -> dict[str, str]:
    """Containers of the spec that have a cgroup: id to UID/container.

    Args:
        one: the pass.
        found: id and pod's UID of each container.
        names: id to name.
    """
    spec = one.enforced
    keys = {line.key for line in spec.containers} if spec is not None else set()
    return {id_: f"{uid}/{names[id_]}" for id_, uid in found if (uid, names.get(id_)) in keys}
