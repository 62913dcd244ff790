"""What was measured, as tables. Does no I/O."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

BASE = "base"
HEAD = (
    "| layout | containers | object kB | operator ms | enforcer ms | etcd kB a pod "
    "| a placed pod / its creation |",
    "|---|---|---|---|---|---|---|",
)


@dataclass(frozen=True)
class Cost:
    """The cost of one write, on average.

    Attributes:
        api_ms: CPU time of the API server, without what it uses when idle.
        etcd_ms: CPU time of etcd, likewise.
        etcd_bytes: what was put into etcd.
        object_bytes: the length of the answer.
        wall_ms: until the answer.
    """

    api_ms: float
    etcd_ms: float
    etcd_bytes: float
    object_bytes: int
    wall_ms: float


@dataclass(frozen=True)
class Measured:
    """One kind of write.

    Attributes:
        layout: of the node's assignment.
        count: exclusive containers on the node; 0 if the write does not depend on them.
        who: operator or enforcer, whose writes make a placed pod; base is a pod's creation.
        what: is written, and how.
        watchers: how many enforcers of other nodes watch.
        cost: of one such write.
    """

    layout: str
    count: int
    who: str
    what: str
    watchers: int
    cost: Cost


def placed_pod(found: Sequence[Measured], reports: int = 1) -> float:
    """CPU time for a pod in milliseconds: a write by the operator, and so many by the enforcer."""
    times = {"operator": 1, "enforcer": reports}
    return sum(one.cost.api_ms * times.get(one.who, 0) for one in found)


def table(found: Sequence[Measured]) -> Iterator[str]:
    """A line for each layout, size and number of watchers, beside the creation of a pod."""
    base = fmean(one.cost.api_ms for one in found if one.who == BASE)
    yield f"creation of a pod: {base:.2f} ms"
    yield from HEAD
    keys = dict.fromkeys((one.layout, one.count, one.watchers) for one in found if one.count)
    for key in keys:
        some = [one for one in found if (one.layout, one.count, one.watchers) == key]
        yield _row(some, base)


def _row(some: Sequence[Measured], base: float) -> str:
    """One line of the table."""
    first = some[0]
    watchers = f" ({first.watchers} other watchers)" if first.watchers else ""
    pair = [one for one in some if one.who in {"operator", "enforcer"}]
    size = max((one.cost.object_bytes for one in pair), default=0)
    cells = (
        first.layout + watchers,
        str(first.count),
        f"{size / 1000:.1f}",
        _ms(some, "operator"),
        _ms(some, "enforcer"),
        f"{sum(one.cost.etcd_bytes for one in pair) / 1000:.1f}",
        f"{placed_pod(some) / base:.2f}",
    )
    return f"| {' | '.join(cells)} |"


def _ms(some: Iterable[Measured], who: str) -> str:
    times = [one.cost.api_ms for one in some if one.who == who]
    return f"{sum(times):.2f}" if times else "-"


def details(found: Sequence[Measured]) -> Iterator[str]:
    """A line for each kind of write."""
    for one in found:
        cost = one.cost
        yield (
            f"{one.layout:18} {one.count:4} {one.watchers:5} {one.who:9} {one.what:38} "
            f"{cost.api_ms:7.2f} ms API server {cost.etcd_ms:6.2f} ms etcd "
            f"{cost.etcd_bytes / 1000:7.1f} kB etcd {cost.object_bytes / 1000:7.1f} kB object"
        )
