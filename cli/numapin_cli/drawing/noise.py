"""The answer to `numapin check`, for people."""

from collections.abc import Iterator
from typing import Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table

from numapin_api.quantity import plural
from numapin_cli.drawing.text import plain, section
from numapin_cli.noise.measured import CpuNoise, GroupNoise, Measured

MOST_ROWS: Final = 12
"""Tasks, and interrupts, of one CPU that are drawn; documents have all."""


def draw_noise(measured: Measured) -> RenderableType:
    """What disturbed each container, CPU by CPU."""
    return Group(
        plain(f"Node {measured.node}: measured for {measured.seconds:.1f} s", "bold"),
        *(() if measured.groups else (plain("  no container has exclusive CPUs"),)),
        *(part for one in measured.groups for part in _group(one, measured.seconds)),
        *(plain(f"note: {text}", "dim") for text in measured.notes),
    )


def _group(one: GroupNoise, seconds: float) -> Iterator[RenderableType]:
    cpus = one.group.cpus
    noun = "CPU" if len(cpus) == 1 else "CPUs"
    yield from section(f"{one.group.name}: {noun} {cpus}", _table(one))
    verdict = "disturbed" if one.is_disturbed(seconds) else "not disturbed"
    others = _others(one, seconds)
    waited = f"waited {_milliseconds(one.waited_seconds)} for a CPU"
    moved = plural(one.migrations, "migration")
    style = "yellow" if one.is_disturbed(seconds) else "green"
    yield Padding(plain(f"{verdict}: {others}; its threads {waited}, {moved}", style), (0, 0, 0, 2))


def _others(one: GroupNoise, seconds: float) -> str:
    if one.foreign_seconds is None:
        return "how much others used is not known"
    share = 100 * one.foreign_seconds / (seconds * len(one.group.cpus))
    used = f"others used {_milliseconds(one.foreign_seconds)} ({share:.2f} %)"
    switches = one.foreign_switches
    return used if switches is None else f"{used} and began to run {switches:,} times"


def _table(one: GroupNoise) -> RenderableType:
    rows = Table.grid(padding=(0, 2))
    for _ in range(5):
        rows.add_column(overflow="fold")
    for cpu in one.cpus.values():
        for index, cells in enumerate(_rows(cpu)):
            rows.add_row(plain(f"CPU {cpu.cpu}" if not index else "", "bold"), *map(plain, cells))
    return rows


def _rows(cpu: CpuNoise) -> Iterator[tuple[str, ...]]:
    tasks, interrupts = cpu.most_tasks, cpu.most_interrupts
    for task in tasks[:MOST_ROWS]:
        kind = "kernel" if task.is_kernel else "task"
        yield kind, task.name, _milliseconds(task.seconds), plural(task.switches, "time")
    for (number, name), count in interrupts[:MOST_ROWS]:
        title = f"{number} {name}" if number != name else name
        yield "interrupt", title, "", plural(count, "time")
    more = max(0, len(tasks) - MOST_ROWS) + max(0, len(interrupts) - MOST_ROWS)
    if more:
        yield "", f"and {more} more (-o json lists them)", "", ""
    if not tasks and not interrupts:
        yield "", "nothing was seen", "", ""


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms"
