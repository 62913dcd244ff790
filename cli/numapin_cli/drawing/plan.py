"""A plan as a drawing: the containers, the refused pods, the pools and the machine."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import ContainerAssignment, NodeAssignmentSpec, Refusal
from numapin_api.topology import Topology
from numapin_cli.drawing.machine import core_list, draw_boxes
from numapin_cli.drawing.text import plain, section
from numapin_cli.live.node_state import memory_text
from numapin_operator.placement import PodView

_LETTERS: Final = ascii_uppercase + ascii_lowercase
_COLOURS: Final = ("green", "yellow", "blue", "magenta", "cyan", "red")
_RESERVED: Final = "r"
_SHARED: Final = "."
_MANY: Final = "#"


@dataclass(frozen=True, slots=True)
class Holder:
    """A container that has CPUs, and the mark of its CPUs in the drawing."""

    entry: ContainerAssignment
    mark: str
    colour: str


def draw_plan(
    topology: Topology, spec: NodeAssignmentSpec, pods: Sequence[PodView], *, machine: bool = True
) -> RenderableType:
    """The table of containers, the refused pods, the pools, and the machine if it is wanted."""
    holders = holders_of(spec.containers)
    return Group(
        _table(pods, spec, holders),
        *draw_refusals(spec.refused),
        *draw_refused_resizes(spec.refused_resizes or ()),
        *draw_pools(spec),
        *(draw_marked_machine(topology, spec, holders) if machine else ()),
    )


def holders_of(entries: Sequence[ContainerAssignment]) -> dict[tuple[str, str], Holder]:
    """The containers that have CPUs, by pod UID and container, each with a mark of its own."""
    marked = {}
    for number, entry in enumerate(entry for entry in entries if entry.cpus):
        mark = _LETTERS[number] if number < len(_LETTERS) else _MANY
        holder = Holder(entry, mark, _COLOURS[number % len(_COLOURS)])
        marked[entry.key] = holder
    return marked


def _table(
    pods: Sequence[PodView],
    spec: NodeAssignmentSpec,
    holders: Mapping[tuple[str, str], Holder],
) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("", "pod", "container", "CPUs", "NUMA", "memory"):
        table.add_column(heading, overflow="fold")
    entries = {entry.key: entry for entry in spec.containers}
    refused = {refusal.pod_uid for refusal in spec.refused}
    for pod in pods:
        for container in pod.containers:
            key = (pod.uid, container.name)
            holder, entry = holders.get(key), entries.get(key)
            table.add_row(
                Text(holder.mark, f"bold {holder.colour}") if holder else "",
                f"{pod.namespace}/{pod.name}",
                container.name,
                _cpus(entry, is_refused=pod.uid in refused),
                str(entry.mems) if entry else "",
                memory_text(entry) if entry else "",
            )
    return table


def _cpus(entry: ContainerAssignment | None, *, is_refused: bool) -> Text:
    if entry is not None and entry.cpus:
        return Text(cpus_text(entry))
    return Text("shared, refused", "red") if is_refused else Text("shared", "dim")


def cpus_text(entry: ContainerAssignment) -> str:
    """The CPUs of a container, and whether it shares them with others of its pod."""
    shared = bool(entry.cpus) and not entry.exclusive
    return f"{entry.cpus} (within the pod)" if shared else str(entry.cpus)


def draw_refusals(refused: Sequence[Refusal]) -> Iterator[RenderableType]:
    """The refused containers with the reasons; nothing if there is none."""
    yield from _draw_refusals("Refused (they run in the shared pool)", refused)


def draw_refused_resizes(refused: Sequence[Refusal]) -> Iterator[RenderableType]:
    """The containers whose resize waits, with the reasons; nothing if there is none."""
    yield from _draw_refusals("Waiting to be resized (they keep what they have)", refused)


def _draw_refusals(heading: str, refused: Sequence[Refusal]) -> Iterator[RenderableType]:
    if not refused:
        return
    rows = Table.grid(padding=(0, 2))
    for refusal in refused:
        name = f"{refusal.namespace}/{refusal.pod}"
        who = f"{name} {refusal.container}" if refusal.container else name
        rows.add_row(plain(who, "bold"), plain(refusal.reason, "red"), plain(refusal.message))
    yield from section(heading, rows)


def draw_pools(spec: NodeAssignmentSpec) -> Iterator[RenderableType]:
    """The pools; nothing if there are none."""
    if spec.pools is None:
        return
    rows = Table.grid(padding=(0, 2))
    rows.add_row(f"{_RESERVED}  reserved", str(spec.pools.reserved))
    rows.add_row(f"{_SHARED}  shared", str(spec.pools.shared))
    yield from section("Pools", rows)


def draw_marked_machine(
    topology: Topology, spec: NodeAssignmentSpec, holders: Mapping[tuple[str, str], Holder]
) -> Iterator[RenderableType]:
    """The machine, each core with a mark for each of its CPUs."""
    marks: dict[int, tuple[str, str]] = {}
    for holder in holders.values():
        for cpu in holder.entry.cpus:
            marks[cpu] = (holder.mark, f"bold {holder.colour}")
    reserved = spec.pools.reserved if spec.pools else CpuSet()

    def core_text(core: CpuSet) -> Text:
        drawn = core_list(core)
        for cpu in core:
            drawn.append(*marks.get(cpu, (_RESERVED if cpu in reserved else _SHARED, "dim")))
        return drawn

    yield Text("\nThe machine, each core with a mark for each of its CPUs", style="bold")
    yield from draw_boxes(topology, core_text)
