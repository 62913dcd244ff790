"""PCI devices as a table, by NUMA node and class."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from numapin_api.hardware.compact import LOCAL_CLASSES, class_name
from numapin_api.text import first_texts
from numapin_api.topology import DeviceName, PciDevice
from numapin_cli.drawing.text import plain, section

_ADDRESSES_SHOWN: Final = 8
_NAMES_SHOWN: Final = 4


def draw_pci(devices: Iterable[PciDevice], names: Iterable[DeviceName]) -> Iterator[RenderableType]:
    """Counts for every class; addresses and names for classes whose locality matters."""
    named: dict[str, list[str]] = {}
    for one in names:
        for address in one.pci:
            named.setdefault(address, []).append(one.name)
    groups: dict[int | None, dict[str, list[PciDevice]]] = {}
    for device in devices:
        of_node = groups.setdefault(device.numa_node, {})
        of_node.setdefault(class_name(device.pci_class), []).append(device)
    if not groups:
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(justify="right")
    table.add_column(no_wrap=True)
    table.add_column()
    for node in sorted(groups, key=lambda one: (one is None, one or 0)):
        label = "no NUMA node" if node is None else f"NUMA node {node}"
        for name, members in sorted(groups[node].items(), key=lambda one: one[1][0].pci_class):
            table.add_row(Text(label, "green"), str(len(members)), name, _addresses(members, named))
            label = ""
    yield from section("PCI devices", table)


def _addresses(devices: list[PciDevice], named: Mapping[str, Sequence[str]]) -> Text:
    """A line for each device that has names, with these; then the addresses of the others."""
    local = [one.address for one in devices if one.pci_class.startswith(LOCAL_CLASSES)]
    shown = sorted(local, key=lambda address: address not in named)[:_ADDRESSES_SHOWN]
    lines = [
        f"{one}  {first_texts(named[one], _NAMES_SHOWN, ' ')}" for one in shown if one in named
    ]
    others = [one for one in shown if one not in named]
    if others or len(local) > len(shown):
        lines.append(first_texts(others, len(others), " ", of=len(local) - len(lines)).strip())
    return Text("\n").join(map(plain, lines))
