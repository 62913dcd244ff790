"""Reads /proc/interrupts for some CPUs, and compares it. Does no I/O."""

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from numapin_api.cpuset import CpuSet
from numapin_api.text import escaped

MOST_ROWS: Final = 4096
MOST_NAME: Final = 64
"""Characters of a name: drivers build it of names of devices."""

_GAP: Final = re.compile(rb"\s{2,}")


class Interrupt(NamedTuple):
    """How often an interrupt came on some CPUs since the machine began.

    Attributes:
        number: of a device, or the kernel's letters for another one, such as LOC.
        name: the drivers that it belongs to, or what it is; escaped.
        cpus: the CPUs where it came.
        counts: of each of them, 32 bits as in the kernel: a machine may have half a million.
    """

    number: str
    name: str
    cpus: "array[int]"
    counts: "array[int]"

    def came(self) -> Iterator[tuple[int, int]]:
        """The CPUs where it came, each with its count."""
        return zip(self.cpus, self.counts, strict=True)


def parse_interrupts(lines: Iterable[bytes], cpus: CpuSet) -> Iterator[Interrupt]:
    """The interrupts that came on some CPUs. A row that cannot be read is left out.

    Source: Linux, kernel/irq/proc.c, `show_interrupts`, and `arch_show_interrupts`: the first line
    names the CPUs that are online. Rows without a count for each of them (ERR, MIS) are of no CPU.
    """
    rows = iter(lines)
    columns = [int(one[3:]) for one in next(rows, b"").split() if one[3:].isdigit()]
    wanted = [(index, cpu) for index, cpu in enumerate(columns) if cpu in cpus]
    if not wanted:
        return
    for _, row in zip(range(MOST_ROWS), rows, strict=False):
        number, _, rest = row.partition(b":")
        fields = rest.split(None, len(columns))
        if len(fields) < len(columns):
            continue
        came = [(cpu, fields[index]) for index, cpu in wanted if fields[index] != b"0"]
        try:
            counts = array("I", [int(text) for _, text in came])
        except (ValueError, OverflowError):
            continue
        if came:
            about = fields[-1] if len(fields) > len(columns) else number
            name = escaped(_GAP.split(about.strip())[-1])[:MOST_NAME]
            cpus_of = array("H", [cpu for cpu, _ in came])
            yield Interrupt(escaped(number.strip())[:MOST_NAME], name, cpus_of, counts)


def increases(
    before: Iterable[Interrupt], after: Iterable[Interrupt], known: CpuSet
) -> Iterator[tuple[Interrupt, int, int]]:
    """How often each interrupt came since, with the CPU.

    Args:
        before: an earlier reading.
        after: the later one.
        known: the CPUs of both. What is not in the earlier one had not come there yet.
    """
    rows = {(one.number, one.name): one for one in before}
    for one in after:
        was = rows.get((one.number, one.name))
        counts: Mapping[int, int] = dict(was.came()) if was is not None else {}
        for cpu, count in one.came():
            increase = count - counts.get(cpu, 0)
            if increase > 0 and cpu in known:
                yield one, cpu, increase
