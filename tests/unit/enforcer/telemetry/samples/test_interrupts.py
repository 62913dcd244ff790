"""/proc/interrupts of several machines, and texts that are none."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_enforcer.telemetry.samples.interrupts import MOST_NAME, MOST_ROWS, parse_interrupts

X86 = b"""\
           CPU0       CPU2       CPU3       \n\
  0:         46          0          0  IR-IO-APIC    2-edge      timer
 26:          0         13          7 PCI-MSIX-0000:00:01.0   3-edge      virtio0-stats
 27:          1          2          3  IR-IO-APIC   20-fasteoi   i801_smbus, idma64.0
 28:          0          0          5  IR-IO-APIC   21-edge
NMI:          0          0          0   Non-maskable interrupts
LOC:        100        200        300   Local timer interrupts
ERR:          0
"""
ARM = b"""\
           CPU0       CPU1       \n\
 11:       9301      10323     GICv3  27 Level     arch_timer
IPI0:       123        456       Rescheduling interrupts
Err:          0
"""


def found(text: bytes, cpus: str) -> list[tuple[str, str, dict[int, int]]]:
    rows = parse_interrupts(text.splitlines(keepends=True), CpuSet.parse(cpus))
    return [(one.number, one.name, dict(one.came())) for one in rows]


def test_rows_that_came_on_the_cpus_by_number_and_name() -> None:
    assert found(X86, "1-3") == [
        ("26", "virtio0-stats", {2: 13, 3: 7}),
        ("27", "i801_smbus, idma64.0", {2: 2, 3: 3}),
        ("28", "21-edge", {3: 5}),
        ("LOC", "Local timer interrupts", {2: 200, 3: 300}),
    ]


def test_another_architecture_and_its_names() -> None:
    assert found(ARM, "1") == [
        ("11", "arch_timer", {1: 10323}),
        ("IPI0", "Rescheduling interrupts", {1: 456}),
    ]


def test_a_cpu_that_is_offline_or_a_file_that_is_empty_has_none() -> None:
    assert found(X86, "1") == []
    assert found(b"", "0-9") == []


def test_a_name_with_control_characters_is_escaped_and_cut() -> None:
    name = b"\x1b[31m\xff" + b"x" * 100
    text = b"  CPU0  \n  5:  7  GIC  1 Edge     " + name + b"\n"
    ((_, shown, _),) = found(text, "0")
    assert shown.isprintable()
    assert shown.isascii()
    assert shown.startswith(r"\x1b[31m\xff")
    assert len(shown) == MOST_NAME


def test_more_rows_than_a_machine_has_are_not_read() -> None:
    rows = b"".join(b"%d: 1 x  y\n" % number for number in range(MOST_ROWS + 50))
    assert len(found(b"CPU0\n" + rows, "0")) == MOST_ROWS


@given(st.lists(st.binary(max_size=80), max_size=12))
def test_no_text_makes_it_fail(lines: list[bytes]) -> None:
    for head in ([b"CPU0 CPU1\n"], []):
        for one in parse_interrupts([*head, *lines], CpuSet((0, 1))):
            assert {*dict(one.came())} <= {0, 1}
            assert (one.number + one.name).isascii()


def test_this_machine_has_some_on_each_of_its_cpus() -> None:
    rows = Path("/proc/interrupts").read_bytes().splitlines(keepends=True)
    named = {one.name: dict(one.came()) for one in parse_interrupts(rows, CpuSet((0,)))}
    assert named["Local timer interrupts"][0] > 0
