"""One operator's part in the elections of all shards, without the requests.

A round is: read the Leases, ask `moves` what to do, and write. Times are seconds of the caller's
monotonic clock. The rules are those of `LeaderElector`, for several Leases: a lead ends some time
after the last renewal was *sent*; others take a Lease that has not changed for longer than that.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from numapin_api import names
from numapin_client.resources import Json, Key
from numapin_operator.installation.observed_lease import DEFAULT_TIMING, JITTER, LeaseTiming
from numapin_operator.installation.undivided import DIVISION
from numapin_operator.shards.division import Identity, lease_name, shard_of

ASKED_BY: Final = f"{names.GROUP}/asked-by"
"""On the Lease of a shard: the operator to which its holder should hand it over."""

ROUNDS_OF_PATIENCE: Final = 2
"""For how many rounds a free shard is left to an operator that has one shard less, or has asked."""


@dataclass(frozen=True, slots=True)
class Moves:
    """What to do in a round.

    Attributes:
        renew: the shards whose Leases to renew.
        take: a shard whose Lease to take.
        hand_over: a shard to stop working on, whose Lease to free when that is done.
        ask: a shard for which to ask its holder.
        stop: a shard's lead must end at once: operators with another number of shards lead.
    """

    renew: tuple[int, ...] = ()
    take: int | None = None
    hand_over: int | None = None
    ask: int | None = None
    stop: tuple[int, ...] = ()


@dataclass(slots=True)
class _Seen:
    """A Lease as last read, and since when it has been as it is."""

    body: Json | None = None
    changed_at: float = -math.inf
    free_since: float | None = None
    fingerprint: str = field(default="never read")

    @property
    def spec(self) -> Mapping[str, Any]:
        return (self.body or {}).get("spec") or {}

    @property
    def holder(self) -> Identity:
        return Identity.parse(str(self.spec.get("holderIdentity") or ""))

    def annotation(self, name: str) -> str:
        metadata: Mapping[str, Any] = (self.body or {}).get("metadata") or {}
        return str((metadata.get("annotations") or {}).get(name) or "")

    def read(self, body: Json | None, now: float, lease_seconds: float) -> None:
        """Take in a state. Only its holder changes the spec: an annotation renews nothing."""
        self.body = body
        fingerprint = json.dumps(self.spec, sort_keys=True)
        if fingerprint != self.fingerprint:
            self.fingerprint, self.changed_at = fingerprint, now
        lasts = float(self.spec.get("leaseDurationSeconds") or lease_seconds)
        if self.holder.name and now - self.changed_at < lasts:
            self.free_since = None
        elif self.free_since is None:
            self.free_since = now

    @property
    def is_held(self) -> bool:
        """Whether it must be left to its holder."""
        return self.free_since is None and self.body is not None


class Candidate:
    """What one operator knows of the Leases of all shards, and what follows from it.

    Attributes:
        me: this operator.
    """

    def __init__(self, me: Identity, namespace: str, timing: LeaseTiming = DEFAULT_TIMING) -> None:
        """Know nothing yet.

        Args:
            me: this operator, and how many shards it was told.
            namespace: where the Leases are.
            timing: the durations of the elections.
        """
        self.me, self._namespace, self._timing = me, namespace, timing
        self._seen = [_Seen() for _ in range(me.shards)]
        self._until = [-math.inf] * me.shards
        self._first_read_at = -math.inf
        """When the request was sent that showed the Lease of shard 0 last."""
        self._first_held_at: float | None = None
        """Since when this operator is known to hold the Lease of shard 0."""
        self._handing_over: int | None = None
        self._counted: Counter[Identity] = Counter()
        self._counted_at = -math.inf
        """Since when each operator has as many shards as it has now."""

    def leads_until(self, shard: int) -> float:
        """Until when this operator may write what concerns a shard; -inf if it may not."""
        return self._until[shard]

    def holds(self, shard: int) -> bool:
        """Whether this operator has a shard's Lease, whether or not it may write."""
        return self._seen[shard].holder == self.me

    def read(self, shard: int, body: Json | None, sent: float, now: float) -> None:
        """Take in a Lease, None if it does not exist, by a request that was sent at `sent`."""
        if shard == 0:
            self._first_read_at = sent
        self._take_in(shard, body, now)

    def moves(self, now: float) -> Moves:
        """What to do after all Leases were read."""
        mine, counts = self._mine(), self._counts()
        if counts != self._counted:
            self._counted, self._counted_at = counts, now
        if self._is_other_division():
            # Its holder may be gone, but what it has begun may still be under way.
            return Moves(stop=tuple(sorted(mine)), take=self._takes(set(), counts, now))
        take = self._takes(mine, counts, now)
        return Moves(
            renew=tuple(sorted(mine)),
            take=take,
            hand_over=self._hands_over(mine, counts),
            ask=self._asks(mine, counts) if take is None else None,
        )

    def held(self, shard: int, now: float, now_text: str) -> Json:
        """The Lease as it must be written for this operator to hold it, or to hold it still."""
        seen, marks = self._seen[shard], dict[str, str]()
        spec = {
            **seen.spec,
            "holderIdentity": str(self.me),
            "leaseDurationSeconds": math.ceil(self._timing.lease_seconds),
            "renewTime": now_text,
        }
        if seen.holder != self.me:
            spec["acquireTime"] = now_text
            spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + bool(seen.spec)
        if seen.holder != self.me or not self._is_due(shard, self._mine(), self._counts()):
            marks[ASKED_BY] = ""
        if shard == 0 and not self._must_wait(now):
            marks[DIVISION] = str(self.me.shards)
        return self._body(shard, spec, marks)

    def freed(self, shard: int, now_text: str) -> Json:
        """The Lease as it must be written to free it; who has asked for it may take it first."""
        spec = {**self._seen[shard].spec, "holderIdentity": "", "leaseDurationSeconds": 1}
        return self._body(shard, spec | {"renewTime": now_text}, {})

    def asked(self, shard: int) -> Json:
        """The Lease as it must be written to ask its holder for the shard."""
        return self._body(shard, dict(self._seen[shard].spec), {ASKED_BY: str(self.me)})

    def wrote(self, shard: int, body: Json, sent: float, now: float) -> None:
        """Take in the answer to a write of `held`, by a request that was sent at `sent`.

        Shard 0 is led only once its Lease says so: until then operators with another number of
        shards may lead, who have not read that it has another holder.
        """
        self._take_in(shard, body, now)
        if shard == self._handing_over or (shard == 0 and self._divided_otherwise()):
            return
        since = sent if shard == 0 else min(sent, self._first_read_at)
        self._until[shard] = since + self._timing.renew_deadline_seconds

    def hand_over(self, shard: int) -> None:
        """End the lead of a shard, whose Lease is renewed until it is freed."""
        self._handing_over, self._until[shard] = shard, -math.inf

    def stop(self, shard: int) -> None:
        """End the lead of a shard at once."""
        self._until[shard] = -math.inf

    def _take_in(self, shard: int, body: Json | None, now: float) -> None:
        seen = self._seen[shard]
        seen.read(body, now, self._timing.lease_seconds)
        is_mine = seen.holder == self.me
        if not is_mine:
            self._until[shard] = -math.inf
            if self._handing_over == shard:
                self._handing_over = None
        if shard == 0:
            known = self._first_held_at
            self._first_held_at = (now if known is None else known) if is_mine else None

    def _mine(self) -> set[int]:
        return {shard for shard, one in enumerate(self._seen) if one.holder == self.me}

    def _counts(self) -> Counter[Identity]:
        """How many shards each operator has; the Leases of this one are its own, expired or not."""
        counts = Counter(one.holder for one in self._seen if one.is_held)
        counts[self.me] = len(self._mine())
        return counts

    def _is_other_division(self) -> bool:
        """Whether an operator with another number of shards has the Lease of shard 0."""
        first = self._seen[0].holder
        return bool(first.name) and first.shards != self.me.shards

    def _divided_otherwise(self) -> bool:
        """Whether operators with another number of shards, and more than one, may lead still."""
        division = self._seen[0].annotation(DIVISION)
        return division not in ("", "1", str(self.me.shards))

    def _must_wait(self, now: float) -> bool:
        """Whether those operators may still lead: they stop once they have read who took it."""
        held_at = self._first_held_at
        if not self._divided_otherwise():
            return False
        return held_at is None or now < held_at + self._timing.lease_seconds

    def _is_settled(self) -> bool:
        """Whether shards beside shard 0 may be taken."""
        first = self._seen[0]
        division = first.annotation(DIVISION)
        return first.is_held and not self._is_other_division() and division == str(self.me.shards)

    def _takes(self, mine: set[int], counts: Counter[Identity], now: float) -> int | None:
        """A shard to take: one each round, so that operators that start together share them."""
        round_seconds = self._timing.retry_seconds * JITTER
        least = min(counts.values())
        patience = ROUNDS_OF_PATIENCE * round_seconds
        found = []
        for shard, one in enumerate(self._seen):
            if one.is_held or shard in mine or (shard and not self._is_settled()):
                continue
            free_since = one.free_since if one.free_since is not None else now
            free_seconds = now - max(free_since, self._counted_at)
            asked_by = one.annotation(ASKED_BY)
            if asked_by == str(self.me):
                found.append((0, 0, shard))
            elif free_seconds >= patience * (len(mine) - least + bool(asked_by)):
                found.append((1 if shard == 0 else 2, self._preference(shard), shard))
        return min(found)[-1] if found else None

    def _hands_over(self, mine: set[int], counts: Counter[Identity]) -> int | None:
        """A shard to hand over; one at a time, and the same one until its Lease is free."""
        if self._handing_over is not None:
            return self._handing_over
        due = (shard for shard in sorted(mine, reverse=True) if self._is_due(shard, mine, counts))
        return next(due, None)

    def _is_due(self, shard: int, mine: set[int], counts: Counter[Identity]) -> bool:
        """Whether a shard was asked for by an operator that has at most as many afterwards."""
        asked_by = Identity.parse(self._seen[shard].annotation(ASKED_BY))
        if not asked_by.name or asked_by == self.me or asked_by.shards != self.me.shards:
            return False
        return len(mine) >= counts[asked_by] + 2

    def _asks(self, mine: set[int], counts: Counter[Identity]) -> int | None:
        """A shard to ask for: one of the operator that has most, if that has two more."""
        asked = [one for one in self._seen if one.annotation(ASKED_BY) == str(self.me)]
        if not self._is_settled() or any(counts[one.holder] >= len(mine) + 2 for one in asked):
            return None
        fullest = max(counts.values())
        if fullest < len(mine) + 2:
            return None
        choice = [
            (shard == 0, self._preference(shard), shard)
            for shard, one in enumerate(self._seen)
            if one.is_held and counts[one.holder] == fullest and not one.annotation(ASKED_BY)
        ]
        return min(choice)[-1] if choice else None

    def _preference(self, shard: int) -> int:
        """Which shards this operator tries first: others try others."""
        return shard_of(f"{self.me.name} {shard}", 2**32)

    def _body(self, shard: int, spec: Json, marks: Mapping[str, str | None]) -> Json:
        before: Mapping[str, Any] = (self._seen[shard].body or {}).get("metadata") or {}
        annotations = {**(before.get("annotations") or {}), **marks}
        kept = {name: text for name, text in annotations.items() if text}
        key = Key(lease_name(shard), self._namespace)
        about = {"name": key.name, "namespace": key.namespace, "annotations": kept}
        return {"metadata": {**before, **about}, "spec": spec}
