"""A machine as a drawing: its CPUs and memory in boxes that fit 80 columns."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from numapin_api.cpuset import CpuSet
from numapin_api.quantity import format_bytes, plural
from numapin_api.topology import NumaNode, Topology
from numapin_cli.drawing.pci import draw_pci
from numapin_cli.drawing.text import section

CoreText = Callable[[CpuSet], Text]
"""How one core is written, given the CPUs that are its threads."""

Row = Sequence[Text | str]

_MATRIX_NODES: Final = 16
"""A row with more distances than this does not fit 80 columns."""


def core_list(cpus: CpuSet) -> Text:
    """A core as its CPU number, or as the kernel list of its threads in brackets."""
    return Text(str(cpus)) if len(cpus) == 1 else Text(f"[{cpus}]")


def draw_machine(topology: Topology, core_text: CoreText = core_list) -> RenderableType:
    """The whole machine: totals, boxes of CPUs and memory, distances, devices and warnings."""
    return Group(
        _totals(topology),
        *draw_boxes(topology, core_text),
        *_nodes_without_cpus(topology),
        *_distances(topology.numa_nodes),
        *_odd_cpus(topology),
        *draw_pci(topology.pci, topology.names),
        *_warnings(topology.warnings),
    )


def draw_boxes(topology: Topology, core_text: CoreText = core_list) -> Iterator[RenderableType]:
    """One box for each socket with its NUMA nodes in it, or for each NUMA node with its sockets.

    Sockets are outside where no NUMA node is in two of them, which is the rule on today's machines.
    """
    sockets = topology.socket_cpus
    nodes = [node for node in topology.numa_nodes if topology.numa_cpus[node.id]]
    if all(any(topology.numa_cpus[node.id] <= cpus for cpus in sockets.values()) for node in nodes):
        for number, cpus in sockets.items():
            inside = [node for node in nodes if topology.numa_cpus[node.id] <= cpus]
            body = (_node_in_socket(topology, node, core_text) for node in inside)
            yield _box(f"Socket {number}", _cpu_counts(topology, cpus), body)
    else:
        for node in nodes:
            rows = _rows_by_socket(topology, topology.numa_cpus[node.id], core_text)
            yield _box(f"NUMA node {node.id}", _node_facts(topology, node), [_grid(rows)])


def _totals(topology: Topology) -> Text:
    parts = [
        _cpu_counts(topology, topology.online),
        plural(len(topology.socket_cpus), "socket"),
        plural(len(topology.numa_nodes), "NUMA node"),
        format_bytes(sum(node.memory_bytes for node in topology.numa_nodes if not node.on_device)),
    ]
    on_devices = sum(node.memory_bytes for node in topology.numa_nodes if node.on_device)
    more = f" and {format_bytes(on_devices)} on GPUs" if on_devices else ""
    return Text(f"{', '.join(parts)}{more}", style="bold")


def _cpu_counts(topology: Topology, cpus: CpuSet) -> str:
    widths = sorted({len(core) for core in _cores_in(topology, cpus)})
    cores = plural(len(_cores_in(topology, cpus)), "core")
    threads = f" of {' or '.join(map(str, widths))} threads" if widths != [1] else ""
    return f"{plural(len(cpus), 'CPU')} on {cores}{threads}"


def _box(title: str, facts: str, body: Iterable[RenderableType]) -> Panel:
    heading = Text.assemble((title, "bold cyan"), f"  {facts}")
    return Panel(Group(*body), title=heading, title_align="left", box=box.ROUNDED)


def _node_in_socket(topology: Topology, node: NumaNode, core_text: CoreText) -> RenderableType:
    heading = Text.assemble((f"NUMA node {node.id}", "bold green"), "  ")
    heading.append(_node_facts(topology, node))
    rows = _rows_by_cache(topology, topology.numa_cpus[node.id], core_text)
    return Group(heading, Padding(_grid(rows), (0, 0, 0, 2)))


def _node_facts(topology: Topology, node: NumaNode) -> str:
    cpus = topology.numa_cpus[node.id]
    facts = [plural(len(cpus), "CPU")] if cpus else []
    facts.append(format_bytes(node.memory_bytes))
    pages = [f"{number} x {size}" for size, number in node.hugepages.items() if number]
    return ", ".join([*facts, *([f"huge pages {' + '.join(pages)}"] if pages else [])])


def _rows_by_cache(topology: Topology, cpus: CpuSet, core_text: CoreText) -> Iterator[list[Text]]:
    """A row for each L3 that is near these CPUs, and one for CPUs without."""
    rest = cpus
    for number, shared in topology.uncore_cache_cpus.items():
        if not shared.isdisjoint(cpus):
            yield [Text(f"L3 {number}", "magenta"), _core_row(topology, shared & cpus, core_text)]
            rest -= shared
    if rest:
        label = "no L3" if topology.uncore_cache_cpus else ""
        yield [Text(label, "magenta"), _core_row(topology, rest, core_text)]


def _rows_by_socket(topology: Topology, cpus: CpuSet, core_text: CoreText) -> Iterator[list[Text]]:
    for number, inside in topology.socket_cpus.items():
        for row in _rows_by_cache(topology, inside & cpus, core_text):
            yield [Text(f"socket {number}", "cyan"), *row]


def _core_row(topology: Topology, cpus: CpuSet, core_text: CoreText) -> Text:
    """The cores of these CPUs, all of one width so that they stand in columns."""
    cells = [core_text(core) for core in _cores_in(topology, cpus)]
    width = max(cell.cell_len for cell in cells)
    for cell in cells:
        cell.pad_right(width - cell.cell_len)
    return Text(" ").join(cells)


def _cores_in(topology: Topology, cpus: CpuSet) -> list[CpuSet]:
    return [core & cpus for core in topology.core_cpus.values() if not core.isdisjoint(cpus)]


def _grid(rows: Iterable[Row]) -> Table:
    """Columns without lines; all but the last keep to one line."""
    grid = Table.grid(padding=(0, 2))
    for row in rows:
        while len(grid.columns) < len(row):
            grid.add_column(no_wrap=len(grid.columns) + 1 < len(row))
        grid.add_row(*row)
    return grid


def _nodes_without_cpus(topology: Topology) -> Iterator[RenderableType]:
    bare = [node for node in topology.numa_nodes if not topology.numa_cpus[node.id]]
    rows: list[Row] = []
    for node in bare:
        label, size = Text(f"NUMA node {node.id}", "bold green"), _node_facts(topology, node)
        use = "on a GPU, not for containers" if node.on_device else ""
        rows.append([label, size, _nearest_with_cpus(topology, node), use])
    if rows:
        yield from section("Memory without CPUs", _grid(rows))


def _nearest_with_cpus(topology: Topology, node: NumaNode) -> str:
    others = zip(topology.numa_nodes, node.distances, strict=bool(node.distances))
    with_cpus = [(far, other.id) for other, far in others if topology.numa_cpus[other.id]]
    shortest = min((far for far, _ in with_cpus), default=0)
    nearest = [number for far, number in with_cpus if far == shortest]
    return f"distance {shortest} from {CpuSet(nearest)}" if nearest else ""


def _distances(nodes: Sequence[NumaNode]) -> Iterator[RenderableType]:
    if len(nodes) < 2:
        return
    if len(nodes) > _MATRIX_NODES:
        rows: Iterator[Row] = (
            [Text(f"node {node.id}", "green"), _distance_list(nodes, node)] for node in nodes
        )
        yield from section("Distances (distance: to nodes)", _grid(rows))
        return
    table = Table.grid(padding=(0, 1))
    table.add_row("", *(Text(str(node.id), "green") for node in nodes))
    for column in table.columns:
        column.justify = "right"
    for node in nodes:
        table.add_row(Text(str(node.id), "green"), *map(str, node.distances))
    yield from section("Distances between NUMA nodes", table)


def _distance_list(nodes: Sequence[NumaNode], node: NumaNode) -> str:
    groups: dict[int, list[int]] = {}
    for other, far in zip(nodes, node.distances, strict=bool(node.distances)):
        groups.setdefault(far, []).append(other.id)
    return "  ".join(f"{far}: {CpuSet(ids)}" for far, ids in sorted(groups.items()))


def _odd_cpus(topology: Topology) -> Iterator[RenderableType]:
    rows: list[Row] = [
        [name, str(cpus)]
        for name, cpus in (
            ("offline", topology.offline),
            ("isolated", topology.isolated),
            ("withheld", topology.withheld),
        )
        if cpus
    ]
    if rows:
        yield from section("CPUs not in ordinary use", _grid(rows))


def _warnings(texts: Sequence[str]) -> Iterator[RenderableType]:
    if texts:
        rows: Iterator[Row] = ([Text("!", "bold yellow"), Text(text)] for text in texts)
        yield from section("Warnings", _grid(rows))
