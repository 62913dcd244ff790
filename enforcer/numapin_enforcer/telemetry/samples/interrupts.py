"""Reads /proc/interrupts for some CPUs. Does no I/O."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from numapin_api.cpuset import CpuSet
from numapin_enforcer.threads.reader import escaped

MOST_ROWS: Final = 4096
MOST_NAME: Final = 64
"""Characters of a name: drivers build it of names of devices."""

_GAP: Final = re.compile(rb"\s{2,}")


class Interrupt(NamedTuple):
    """How often an interrupt came on some CPUs since the machine began.

    Attributes:
        number: of a device, or the kernel's letters for another one, such as LOC.
        name: the drivers that it belongs to, or what it is; escaped.
        counts: by CPU; those that are 0 are left out.
    """

    number: str
    name: str
    counts: Mapping[int, int]

    @property
    def is_of_device(self) -> bool:
        """Whether it may be sent to other CPUs by /proc/irq."""
        return self.number.isdecimal()


def parse_interrupts(lines: Iterable[bytes], cpus: CpuSet) -> Iterator[Interrupt]:
    """The interrupts that came on some CPUs. A row that cannot be read is left out.

    Source: Linux, kernel/irq/proc.c, `show_interrupts`, and `arch_show_interrupts`: the first line
    names the CPUs that are online. Rows without a count for each of them (ERR, MIS) are of no CPU.
    """
    rows = iter(lines)
    columns = [int(one[3:]) for one in next(rows, b"").split() if one[3:].isdigit()]
    wanted = [(index, cpu) for index, cpu in enumerate(columns) if cpu in cpus]
    for _, row in zip(range(MOST_ROWS), rows, strict=False):
        number, _, rest = row.partition(b":")
        fields = rest.split(None, len(columns))
        if not wanted or len(fields) < len(columns):
            continue
        counts = {cpu: fields[index] for index, cpu in wanted if fields[index] != b"0"}
        if counts and all(one.isdigit() for one in counts.values()):
            about = fields[-1] if len(fields) > len(columns) else number
            yield Interrupt(
                escaped(number.strip())[:MOST_NAME],
                escaped(_GAP.split(about.strip())[-1])[:MOST_NAME],
                {cpu: int(one) for cpu, one in counts.items()},
            )
