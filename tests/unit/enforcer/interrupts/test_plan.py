"""Which CPUs interrupts get, and what is restored."""

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.interrupts.plan import DEFAULT, WORKQUEUES, Change, Limits, Mask, Saved, plan

ALL = CpuSet.parse("0-7")
NEAR = {0: CpuSet.parse("0-3"), 1: CpuSet.parse("4-7")}
NOTHING = Limits(CpuSet(), CpuSet(), ALL, NEAR)


def cpus(text: str) -> CpuSet:
    return CpuSet.parse(text)


def limits(exclusive: str) -> Limits:
    return Limits(cpus(exclusive), ALL - cpus(exclusive), ALL, NEAR)


def mask(key: str, text: str, name: str = "eth0", numa_node: int = -1) -> Mask:
    return Mask(key, cpus(text), frozenset(filter(None, [name])), numa_node)


def saved(text: str, *ours: str, name: str = "eth0") -> Saved:
    return Saved(cpus(text), frozenset(filter(None, [name])), frozenset(map(cpus, ours)))


@pytest.mark.parametrize(
    ("found", "numa_node", "exclusive", "expected"),
    [
        pytest.param("0-7", -1, "2-3", "0-1,4-7", id="what is left"),
        pytest.param("5", -1, "2-3", "5", id="nothing to leave"),
        pytest.param("2", 0, "2-3", "0-1", id="nothing left: near the device"),
        pytest.param("2-3", 0, "0-3", "4-7", id="nothing left near the device: anywhere"),
        pytest.param("2", 7, "2-3", "0-1,4-7", id="an unknown NUMA node: anywhere"),
        pytest.param("2,9", -1, "2", "0-1,3-7", id="what is left is offline"),
        pytest.param("2", -1, "0-7", "2", id="no other CPU: a device must work"),
    ],
)
def test_what_is_left_of_a_mask(found: str, numa_node: int, exclusive: str, expected: str) -> None:
    assert limits(exclusive).allowed(cpus(found), numa_node) == cpus(expected)


def test_what_was_found_is_saved_and_restored() -> None:
    found = mask("30", "0-7")
    narrowed = plan([found], {}, limits("2-3"), {})
    assert narrowed.changes == (Change(found, cpus("0-1,4-7")),)
    assert narrowed.saved == {"30": saved("0-7", "0-1,4-7")}
    restored = plan([mask("30", "0-1,4-7")], narrowed.saved, NOTHING, {})
    assert [str(one.cpus) for one in restored.changes] == ["0-7"]


def test_a_write_that_a_kill_prevented_loses_nothing() -> None:
    wider = plan([mask("30", "0-1")], {"30": saved("0-7", "0-1")}, limits("2"), {})
    assert wider.saved == {"30": saved("0-7", "0-1", "0-1,3-7")}
    restored = plan([mask("30", "0-1")], wider.saved, NOTHING, {})
    assert [str(one.cpus) for one in restored.changes] == ["0-7"]


def test_a_mask_that_others_set_off_exclusive_cpus_is_theirs() -> None:
    known = {"30": saved("0-7", "0-1,4-7")}
    again = plan([mask("30", "5")], known, limits("2-3"), {"30": cpus("0-1,4-7")})
    assert (again.changes, again.foreign, again.saved) == ((), (), {"30": saved("5")})
    assert plan([mask("30", "5")], again.saved, NOTHING, {}).changes == ()


def test_a_mask_that_others_set_onto_exclusive_cpus_is_set_back() -> None:
    known, found = {"30": saved("0-7", "0-1,4-7")}, mask("30", "3")
    again = plan([found], known, limits("2-3"), {"30": cpus("0-1,4-7")})
    assert again.changes == (Change(found, cpus("0-1,4-7")),)
    assert again.foreign == (found,)
    assert again.saved == known


def test_cpus_that_become_exclusive_are_nobodys_write() -> None:
    again = plan([mask("30", "3")], {"30": saved("3")}, limits("2-3"), {"30": cpus("3")})
    assert again.foreign == ()
    assert [str(one.cpus) for one in again.changes] == ["0-1,4-7"]


def test_a_number_of_another_device_does_not_get_the_mask_of_the_first() -> None:
    known = {"30": saved("4", "0-1", name="eth0")}
    after = plan([mask("30", "0-1", "nvme0q1")], known, NOTHING, {})
    assert after.changes == ()
    assert after.saved == {"30": saved("0-1", name="nvme0q1")}


def test_a_second_device_on_the_same_line_does_not_make_it_another() -> None:
    shared = Mask("30", cpus("0-1"), frozenset({"eth0", "usb1"}))
    after = plan([shared], {"30": saved("0-7", "0-1")}, NOTHING, {})
    assert after.changes == (Change(shared, ALL),)


def test_a_closed_device_keeps_its_saved_mask() -> None:
    known = {"30": saved("0-7", "0-1,4-7")}
    closed = plan([mask("30", "0-1,4-7", "")], known, limits("2-3"), {})
    assert closed.saved == known


def test_an_interrupt_that_is_gone_is_forgotten() -> None:
    assert plan([], {"30": saved("0-7", "0-1")}, limits("2"), {}).saved == {}


def test_an_interrupt_without_a_handler_is_left_alone() -> None:
    after = plan([mask("3", "0-7", "")], {}, limits("2"), {"3": cpus("0-1")})
    assert (after.changes, after.saved, after.foreign) == ((), {}, ())


@pytest.mark.parametrize(
    ("born", "numa_node", "expected"),
    [
        pytest.param("0-1,4-7", -1, "0-7", id="all of the default"),
        pytest.param("0-1", 0, "0-3", id="of the default what is near the device"),
        pytest.param("6", -1, "6", id="its driver has chosen"),
    ],
)
def test_a_new_interrupt_is_widened_to_the_default_that_was_found(
    born: str, numa_node: int, expected: str
) -> None:
    known = {DEFAULT: saved("0-7", "0-1,4-7", name="")}
    masks = [mask(DEFAULT, "0-1,4-7", ""), mask("44", born, "virtio5", numa_node)]
    held = plan(masks, known, limits("2-3"), {})
    assert held.changes == ()
    restored = plan(masks, held.saved, NOTHING, {})
    assert {one.mask.key: str(one.cpus) for one in restored.changes} == {
        DEFAULT: "0-7",
        **({"44": expected} if expected != born else {}),
    }


def test_the_default_and_workqueues_are_narrowed_too() -> None:
    masks = [mask(DEFAULT, "0-7", ""), mask(WORKQUEUES, "0-7", "")]
    changes = plan(masks, {}, limits("2-3"), {}).changes
    assert [(one.mask.key, str(one.cpus)) for one in changes] == [
        (DEFAULT, "0-1,4-7"),
        (WORKQUEUES, "0-1,4-7"),
    ]
