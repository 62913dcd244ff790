"""A node for people: its machine with the containers that have its CPUs."""

from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from numapin_api.names import PAUSED, RELEASED
from numapin_api.quantity import format_bytes
from numapin_api.schema.plain_assignment import ContainerAssignment, NodeAssignmentSpec
from numapin_cli.drawing.plan import (
    Holder,
    cpus_text,
    draw_marked_machine,
    draw_pools,
    draw_refusals,
    draw_refused_resizes,
    holders_of,
)
from numapin_cli.drawing.text import plain, section
from numapin_cli.live.node_state import NodeState, memory_text
from numapin_operator.placement import CPU, Amount, NumaAmounts


def draw_node(state: NodeState, *, wide: bool) -> RenderableType:
    """One node: its containers, its refused pods, its pools and its machine."""
    return Group(*_heading(state), *_body(state, wide=wide))


def _heading(state: NodeState) -> Iterator[RenderableType]:
    heading = Text.assemble(("Node ", "bold"), plain(state.name, "bold"), ": ")
    if state.view is None:
        text = "no policy governs it; every container runs as without numapin"
        released = f"it is released (numapin resume {state.name} ends that); {text}"
        yield heading.append_text(plain(released if state.node_mode == RELEASED else text))
        return
    heading.append_text(plain(f"policy {state.policy or '(none)'}, mode {state.mode}, "))
    yield heading.append_text(
        plain("in force", "green") if state.is_ready else plain(state.readiness, "yellow")
    )
    if state.node_mode == PAUSED:
        yield plain(f"  Paused: nothing changes there until numapin resume {state.name}.", "yellow")
    if state.problem:
        yield plain(f"  {state.problem}", "yellow")
    elif state.ready is not None and not state.is_ready and state.ready.message:
        yield plain(f"  {state.ready.message}", "yellow")


def _body(state: NodeState, *, wide: bool) -> Iterator[RenderableType]:
    if state.view is None:
        return
    spec, topology = state.view.spec, state.view.topology
    holders = holders_of(spec.containers)
    if spec.containers:
        yield _containers(state, spec, holders, wide=wide)
    elif spec.mode != "None":
        yield Text("\nNo container has CPUs of its own.")
    yield from draw_refusals(spec.refused)
    yield from draw_refused_resizes(spec.refused_resizes or ())
    yield from _moving(spec.containers)
    yield from draw_pools(spec)
    yield from _numa_nodes(state.numa_nodes)
    if topology is not None:
        yield from draw_marked_machine(topology, spec, holders)
    else:
        yield Text("\nThe enforcer has not reported the hardware yet.", "yellow")


def _numa_nodes(numa_nodes: Mapping[int, NumaAmounts]) -> Iterator[RenderableType]:
    """What each NUMA node has left of what it offers; nothing if that is not known."""
    rows = Table.grid(padding=(0, 2))
    for numa_node, amounts in numa_nodes.items():
        cells = (
            plain(f"{_left(name, amount)} {'CPUs' if name == CPU else name}")
            for name, amount in amounts.items()
        )
        rows.add_row(plain(str(numa_node), "bold green"), *cells)
    if rows.row_count:
        yield from section("Left on NUMA nodes, of what is not reserved", rows)


def _left(resource: str, amount: Amount) -> str:
    if resource == CPU:
        return f"{amount.available} of {amount.allocatable}"
    available, allocatable = (format_bytes(one, down=True) for one in amount[:0:-1])
    return f"{available} of {allocatable}"


def _moving(containers: Sequence[ContainerAssignment]) -> Iterator[RenderableType]:
    """The containers that are being moved; nothing if there is none."""
    rows = Table.grid(padding=(0, 2))
    for entry in containers:
        if (moving := entry.moving) is not None:
            whom = f" for {moving.namespace}/{moving.pod}" if moving.pod else ""
            name = f"{entry.namespace}/{entry.pod} {entry.container}"
            rows.add_row(plain(name, "bold"), plain(f"off CPUs {moving.leaving}{whom}"))
    if rows.row_count:
        yield from section("Being moved (they have the old CPUs too for a while)", rows)


def _containers(
    state: NodeState,
    spec: NodeAssignmentSpec,
    holders: Mapping[tuple[str, str], Holder],
    *,
    wide: bool,
) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    more = ("pod UID", "notes") if wide else ()
    for heading in ("", "pod", "container", "CPUs", "NUMA", "memory", "in kernel", *more):
        table.add_column(heading, overflow="fold")
    for entry in spec.containers:
        holder = holders.get(entry.key)
        actual = state.in_kernel(entry)
        notes = [word for word in ("outdated", "claimed") if getattr(entry, word)]
        table.add_row(
            Text(holder.mark, f"bold {holder.colour}") if holder else "",
            plain(f"{entry.namespace}/{entry.pod}"),
            plain(entry.container),
            cpus_text(entry),
            str(entry.mems),
            memory_text(entry),
            plain(actual, "" if actual == "yes" else "yellow"),
            *((plain(entry.pod_uid), ", ".join(notes)) if wide else ()),
        )
    return table
