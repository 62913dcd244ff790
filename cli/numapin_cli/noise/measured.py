"""What ran on exclusive CPUs between the first of some pages and the last. Does no I/O."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from numapin_cli.noise.page import Group, Page, Thread, groups_of

MOST_SHARE: Final = 0.001
"""A CPU is disturbed if tasks that are named used more of its time than this."""

MOST_UNNAMED_SHARE: Final = 0.01
"""The same for the CPUs of a container, if no name is known: that is counted in ticks."""

MOST_INTERRUPTS: Final = 1.0
"""A CPU is disturbed if more interrupts of devices come in a second; the timer is none of them."""


@dataclass
class Total:
    """A sum of differences; None once one of them is not known."""

    known: float | None = 0.0

    def add(self, before: float | None, now: float | None) -> None:
        """Add the increase of a counter."""
        if self.known is None or before is None or now is None:
            self.known = None
        else:
            self.known += _increase(before, now)


@dataclass
class TaskNoise:
    """What tasks of one name have had of a CPU that is not theirs."""

    name: str
    is_kernel: bool
    seconds: float = 0.0
    switches: int = 0


@dataclass
class CpuNoise:
    """What was seen on one CPU.

    Attributes:
        cpu: its number.
        switches: how often any task began to run there.
        tasks: by name, those that are not of its container.
        interrupts: by number and name.
    """

    cpu: int
    switches: Total = field(default_factory=Total)
    tasks: dict[tuple[str, bool], TaskNoise] = field(default_factory=dict)
    interrupts: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))

    @property
    def of_devices(self) -> int:
        """How many interrupts of devices came: those that have a number."""
        return sum(count for (number, _), count in self.interrupts.items() if number.isdecimal())

    @property
    def task_seconds(self) -> float:
        """What the tasks have used."""
        return sum(one.seconds for one in self.tasks.values())

    @property
    def most_tasks(self) -> list[TaskNoise]:
        """The tasks, those that used most first."""
        return sorted(self.tasks.values(), key=lambda one: (-one.seconds, -one.switches, one.name))

    @property
    def most_interrupts(self) -> list[tuple[tuple[str, str], int]]:
        """The interrupts, those that came most first."""
        return sorted(self.interrupts.items(), key=lambda one: (-one[1], one[0]))


@dataclass
class GroupNoise:
    """What was seen on the CPUs of a container, or of containers that have them together.

    Attributes:
        group: the containers.
        seconds: CPU time of all tasks on these CPUs, and of the containers alone.
        switches: how often any task began to run there, and one of the containers.
        waited_seconds: for how long threads of the containers waited for a CPU, summed up.
        migrations: how often they went to another CPU.
        cpus: of each CPU.
    """

    group: Group
    seconds: tuple[Total, Total] = field(default_factory=lambda: (Total(), Total()))
    switches: tuple[Total, Total] = field(default_factory=lambda: (Total(), Total()))
    waited_seconds: float = 0.0
    migrations: int = 0
    cpus: dict[int, CpuNoise] = field(default_factory=dict)

    @property
    def foreign_seconds(self) -> float | None:
        """CPU time of other tasks; None if a container has ended meanwhile."""
        return _beyond(self.seconds)

    @property
    def foreign_switches(self) -> int | None:
        """How often other tasks began to run, or threads that ended soon after; None: unknown."""
        found = _beyond(self.switches)
        return None if found is None else int(found)

    def is_disturbed(self, seconds: float) -> bool:
        """Whether something disturbed it in so many seconds."""
        unnamed = (self.foreign_seconds or 0.0) / (seconds * len(self.group.cpus))
        return unnamed > MOST_UNNAMED_SHARE or any(
            one.task_seconds > MOST_SHARE * seconds or one.of_devices > MOST_INTERRUPTS * seconds
            for one in self.cpus.values()
        )


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurement.

    Attributes:
        node: where.
        seconds: how long it took.
        groups: what was seen.
        notes: what is not known, as sentences.
    """

    node: str
    seconds: float
    groups: tuple[GroupNoise, ...]
    notes: tuple[str, ...]

    @property
    def is_disturbed(self) -> bool:
        """Whether something disturbed a container."""
        return any(one.is_disturbed(self.seconds) for one in self.groups)


def measure(node: str, pages: Sequence[Page], pod_uid: str = "") -> Measured:
    """What ran between the first page and the last; there are at least two.

    Args:
        node: where they are from.
        pages: in the order in which they were made, each later than the one before.
        pod_uid: only the containers of this pod; empty for all.
    """
    wanted = [groups_of(page) for page in pages]
    everywhere = set(wanted[0]).intersection(*wanted[1:])
    chosen = {
        key: GroupNoise(group, cpus={cpu: CpuNoise(cpu) for cpu in group.cpus})
        for key, group in sorted(wanted[-1].items(), key=lambda one: one[1].name)
        if key in everywhere and pod_uid in {"", group.pod_uid}
    }
    by_cpu = {cpu: one for noise in chosen.values() for cpu, one in noise.cpus.items()}
    for (before, groups), (after, later) in pairwise(zip(pages, wanted, strict=True)):
        _add_tasks(before, after, by_cpu)
        _add_interrupts(before, after, by_cpu)
        for key, noise in chosen.items():
            _add_group(noise, (before, after), (groups[key], later[key]))
    seconds = pages[-1].taken_seconds - pages[0].taken_seconds
    gone = {
        group.name
        for groups in wanted
        for key, group in groups.items()
        if key not in everywhere and pod_uid in {"", group.pod_uid}
    }
    return Measured(
        node, seconds, tuple(chosen.values()), tuple(_notes(pages, chosen.values(), gone))
    )


def _add_tasks(before: Page, after: Page, by_cpu: Mapping[int, CpuNoise]) -> None:
    """Add what tasks had that were last on the same CPU both times.

    One that has come from another CPU is named, and what it had is not known.
    """
    known = {(one.id, one.start_ticks): one for one in before.tasks}
    for one in after.tasks:
        was = known.get((one.id, one.start_ticks))
        if one.cpu not in by_cpu or (was is not None and one.slices <= was.slices):
            continue
        key = one.name, one.kernel
        found = by_cpu[one.cpu].tasks.setdefault(key, TaskNoise(*key))
        if was is not None and was.cpu == one.cpu:
            found.seconds += _increase(was.ran_seconds, one.ran_seconds)
            found.switches += one.slices - was.slices


def _add_interrupts(before: Page, after: Page, by_cpu: Mapping[int, CpuNoise]) -> None:
    known = {(one.number, one.name): one.counts for one in before.interrupts}
    for one in after.interrupts:
        key = one.number, one.name
        counts = known.get(key, {})
        for cpu, count in one.counts.items():
            if cpu in by_cpu and (came := count - counts.get(cpu, 0)) > 0:
                by_cpu[cpu].interrupts[key] += came


def _add_group(noise: GroupNoise, pages: tuple[Page, Page], groups: tuple[Group, Group]) -> None:
    """Add what the containers and their CPUs had between two pages."""
    all_seconds, own_seconds = noise.seconds
    all_switches, own_switches = noise.switches
    before, after = ({one.cpu: one for one in page.cpus} for page in pages)
    for cpu, found in noise.cpus.items():
        was, now = before[cpu], after[cpu]
        all_seconds.add(was.ran_seconds, now.ran_seconds)
        all_switches.add(was.slices, now.slices)
        found.switches.add(was.slices, now.slices)
    earlier = {one.container: one for one in groups[0].containers}
    for one in groups[1].containers:
        was_there = earlier.get(one.container)
        own_seconds.add(was_there.ran_seconds if was_there else None, one.ran_seconds)
        if not one.threads_complete:
            own_switches.add(None, None)
        _add_threads(noise, own_switches, was_there.threads if was_there else (), one.threads)


def _add_threads(
    noise: GroupNoise, own_switches: Total, before: Iterable[Thread], after: Iterable[Thread]
) -> None:
    known = {one.id: one for one in before}
    for one in after:
        was = known.get(one.id) or Thread(one.id, 0.0, 0, 0)
        own_switches.add(was.slices, one.slices)
        noise.waited_seconds += _increase(was.waited_seconds, one.waited_seconds)
        noise.migrations += int(_increase(was.migrations, one.migrations))


def _increase(before: float, now: float) -> float:
    """A counter that is lower than before is another one, of a thread with a used number."""
    return now - before if now >= before else now


def _beyond(totals: tuple[Total, Total]) -> float | None:
    """What is not the containers' own; the two are not read at the same moment."""
    whole, own = (one.known for one in totals)
    return None if whole is None or own is None else max(0.0, whole - own)


def _notes(
    pages: Sequence[Page], chosen: Collection[GroupNoise], gone: Iterable[str]
) -> Iterator[str]:
    if not all(page.tasks_complete for page in pages):
        yield "the node has more tasks than are looked at: not all are named"
    if chosen and not any(page.interrupts for page in pages):
        yield (
            "the enforcer cannot read /proc/interrupts of the host: mount it and name it "
            "with its option --interrupts, as manifests/components/cpu-metrics does"
        )
    if any(cpu.slices is None for page in pages for cpu in page.cpus):
        yield "the kernel has no CONFIG_SCHEDSTATS: switches are not counted"
    for name in sorted(gone):
        yield f"{name} began or ended meanwhile, or got other CPUs: it is left out"
