"""Which pod has which devices, by UID.

The kubelet lists pods by namespace and name. A pod may have been created again with the name of one
that ends, so a name is taken for a UID only if it cannot be that of another pod. Does no I/O.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from numapin_enforcer.podresources.devices import Rows


@dataclass(frozen=True, slots=True)
class PodAnswer:
    """The pods of a kubelet, by namespace and name.

    Attributes:
        listed: those that it lists once; of a name that it lists twice nothing is known.
        rows: those of them that have devices.
        has_doubles: whether it lists a name twice.
    """

    listed: frozenset[str] = frozenset()
    rows: Mapping[str, Rows] = field(default_factory=dict)
    has_doubles: bool = False


@dataclass(eq=False, slots=True)
class PodRows:
    """The devices of the pods that have a cgroup. What a pod has it keeps: devices do not change.

    Attributes:
        seen: when each of the pods was seen first, by UID.
        names: namespace and name, by UID, as far as the runtime has said.
        rows: the devices, by UID; pods without any are left out.
        guessed: the names of pods that the runtime has not named yet, by UID.
    """

    seen: dict[str, float] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    rows: dict[str, Rows] = field(default_factory=dict)
    guessed: dict[str, str] = field(default_factory=dict)
    _settled: set[str] = field(default_factory=set)

    @property
    def unsettled(self) -> frozenset[str]:
        """The pods of which it is not known whether they have devices."""
        return frozenset(self.seen.keys() - self._settled)

    @property
    def nameless(self) -> frozenset[str]:
        """The pods that the runtime has not named."""
        return frozenset(self.seen.keys() - self.names.keys())

    def keep(self, uids: Iterable[str], now_seconds: float) -> bool:
        """Have these pods, and forget all others; returns whether any came or went."""
        kept = {uid: self.seen.get(uid, now_seconds) for uid in uids}
        if kept.keys() == self.seen.keys():
            return False
        self.seen = kept
        self._settled.intersection_update(kept)
        self.rows = {uid: rows for uid, rows in self.rows.items() if uid in kept}
        self.guessed = {uid: name for uid, name in self.guessed.items() if uid in kept}
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
        self._settled = self.rows.keys() - self.guessed.keys()

    def settle(self, answer: PodAnswer, asked: Iterable[str]) -> frozenset[str]:
        """Take what an answer says of pods that had a cgroup when it was asked for.

        The kubelet had admitted them by then, and forgotten each older pod of their name. While
        another pod of the name has a cgroup, nothing is taken.

        Returns:
            The pods whose name must be known to go on.
        """
        self._drop_wrong_guesses()
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

    def guess(self, answer: PodAnswer, asked: Iterable[str]) -> None:
        """Take the only pod that no listed name is known of for the only listed name left.

        A runtime lists a sandbox when its network is set up, which can take seconds. A guess is
        wrong only if a pod ends before its sandbox was made, and another one has no cgroup yet; it
        is dropped when the runtime names one of the two.
        """
        unknown = self.nameless - self.guessed.keys()
        known = {self.names[uid] for uid in self.seen if uid in self.names}
        left = answer.listed - known - set(self.guessed.values())
        if len(unknown) == len(left) == 1 and unknown <= set(asked) and not answer.has_doubles:
            (uid,), (name,) = unknown, left
            if name in answer.rows:
                self.guessed[uid], self.rows[uid] = name, answer.rows[name]

    def _drop_wrong_guesses(self) -> None:
        """Keep no guess of a pod that has a name, and none of a name that is another pod's."""
        known = {self.names[uid] for uid in self.seen if uid in self.names}
        for uid, name in list(self.guessed.items()):
            is_right = self.names.get(uid) == name
            if is_right or uid in self.names or name in known:
                del self.guessed[uid]
                if not is_right:
                    del self.rows[uid]

    def _is_only(self, uid: str, name: str) -> bool:
        return not any(self.names.get(one) == name for one in self.seen if one != uid)

    def _is_any_left(self, answer: PodAnswer) -> bool:
        """Whether the answer has devices that no known pod has."""
        held = {self.names[uid]: rows for uid, rows in self.rows.items() if uid in self.names}
        return any(held.get(name) != rows for name, rows in answer.rows.items())
