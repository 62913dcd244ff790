"""Which pod has which devices, by UID.

The kubelet lists pods by namespace and name. A pod may have been created again with the name of one
that ends, so a name is taken for a UID only if it cannot be that of another pod. Does no I/O.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from numapin_enforcer.podresources.devices import Rows, Unnamed


@dataclass(frozen=True, slots=True)
class PodAnswer:
    """The pods of a kubelet, by namespace and name.

    Attributes:
        listed: those that it lists once; of a name that it lists twice nothing is known.
        rows: those of them that have devices.
    """

    listed: frozenset[str] = frozenset()
    rows: Mapping[str, Rows] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class PodRows:
    """The devices of the pods that have a cgroup. What a pod has it keeps: devices do not change.

    Attributes:
        seen: when each of the pods was seen first, by UID.
        names: namespace and name, by UID, as far as the runtime has said.
        rows: the devices, by UID; pods without any are left out.
    """

    seen: dict[str, float] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    rows: dict[str, Rows] = field(default_factory=dict)
    _settled: set[str] = field(default_factory=set)

    @property
    def unsettled(self) -> frozenset[str]:
        """The pods of which it is not known whether they have devices."""
        return frozenset(self.seen.keys() - self._settled)

    def keep(self, uids: Iterable[str], now_seconds: float) -> bool:
        """Have these pods, and forget all others; returns whether any came or went."""
        kept = {uid: self.seen.get(uid, now_seconds) for uid in uids}
        if kept.keys() == self.seen.keys():
            return False
        self.seen = kept
        self._settled.intersection_update(kept)
        self.rows = {uid: rows for uid, rows in self.rows.items() if uid in kept}
        return True

    def forget_names(self) -> None:
        """Drop the names of pods without a cgroup."""
        self.names = {uid: name for uid, name in self.names.items() if uid in self.seen}

    def resume(self, rows: Mapping[str, Rows]) -> None:
        """Take over what was reported of these pods before."""
        self.rows |= {uid: found for uid, found in rows.items() if uid in self.seen}
        self._settled |= self.rows.keys()

    def reopen(self) -> None:
        """Doubt that pods without devices have none: a kubelet may have answered too early."""
        self._settled = set(self.rows)

    def settle(self, answer: PodAnswer, asked: Iterable[str]) -> frozenset[str]:
        """Take what an answer says of pods that had a cgroup when it was asked for.

        The kubelet had admitted them by then, and forgotten each older pod of their name. While
        another pod of the name has a cgroup, nothing is taken.

        Returns:
            The pods whose name must be known to go on.
        """
        open_ = self.unsettled.intersection(asked)
        for uid in sorted(open_ & self.names.keys()):
            name = self.names[uid]
            if name in answer.listed and self._is_only(uid, name):
                self._settled.add(uid)
                if name in answer.rows:
                    self.rows[uid] = answer.rows[name]
        nameless = open_ - self.names.keys()
        if self._is_any_left(answer):
            return nameless
        self._settled |= nameless
        return frozenset()

    def unnamed(self, answer: PodAnswer, asked: Iterable[str]) -> Unnamed:
        """What the pods have together that the runtime has not named: it lists a sandbox late.

        Whoever knows the name of one of them knows what it has: the kubelet has listed it under
        its name, since it had admitted it by then, and forgotten each older pod of that name.
        """
        uids = self.unsettled.intersection(asked) - self.names.keys()
        known = {self.names[uid] for uid in self.seen if uid in self.names}
        left = {name: rows for name, rows in answer.rows.items() if name not in known}
        return Unnamed(tuple(sorted(uids)), left) if uids and left else Unnamed()

    def _is_only(self, uid: str, name: str) -> bool:
        return not any(self.names.get(one) == name for one in self.seen if one != uid)

    def _is_any_left(self, answer: PodAnswer) -> bool:
        """Whether the answer has devices that no known pod has."""
        held = {self.names[uid]: rows for uid, rows in self.rows.items() if uid in self.names}
        return any(held.get(name) != rows for name, rows in answer.rows.items())
