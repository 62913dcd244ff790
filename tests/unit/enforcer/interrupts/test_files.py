"""How the kernel's files are read and written; a machine's own are in the test of a real kernel."""

from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.interrupts.files import (
    InterruptsError,
    KernelMasks,
    MaskGoneError,
    MaskRefusedError,
    bit_mask,
    parse_bit_mask,
)
from numapin_enforcer.interrupts.plan import DEFAULT, WORKQUEUES, Mask

TO_WRITE = CpuSet.parse("0-1")


@pytest.fixture
def files(tmp_path: Path) -> KernelMasks:
    irqs, workqueues = tmp_path / "irq", tmp_path / "workqueue"
    for number, names in {"9": ("acpi",), "30": ("eth0-rx",), "7": ()}.items():
        folder = irqs / number
        folder.mkdir(parents=True)
        (folder / "smp_affinity_list").write_text("0-3\n")
        (folder / "effective_affinity_list").write_text("2\n")
        (folder / "node").write_text("-1\n")
        for name in names:
            (folder / name).mkdir()
    (irqs / DEFAULT).write_text("ff,ffffffff\n")
    workqueues.mkdir()
    (workqueues / "cpumask").write_text("03\n")
    return KernelMasks(irqs, workqueues)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("1", "0"), ("0f", "0-3"), ("ff,ffffffff", "0-39"), ("80000000,00000000", "63"), ("0", "")],
)
def test_bit_masks(text: str, cpus: str) -> None:
    assert parse_bit_mask(text) == CpuSet.parse(cpus)
    assert parse_bit_mask(bit_mask(CpuSet.parse(cpus))) == CpuSet.parse(cpus)


def test_all_masks_are_read_in_order(files: KernelMasks) -> None:
    assert list(map(str, files.read(again=True))) == [
        DEFAULT,
        WORKQUEUES,
        "7",
        "9 (acpi)",
        "30 (eth0-rx)",
    ]
    assert str(files.read(again=True)[0].cpus) == "0-39"


def test_what_was_asked_for_of_workqueues_is_read_where_the_kernel_shows_it(
    files: KernelMasks,
) -> None:
    (files.workqueues / "cpumask_requested").write_text("0f\n")
    assert files.read(again=True)[1].cpus == CpuSet.parse("0-3")


def test_files_that_make_no_sense_are_left_out(files: KernelMasks) -> None:
    (files.irqs / "9" / "smp_affinity_list").write_text("what\n")
    (files.irqs / "30" / "node").unlink()
    assert [one.key for one in files.read(again=True)] == [DEFAULT, WORKQUEUES, "7"]


def test_an_interrupt_and_a_bit_mask_are_written(files: KernelMasks) -> None:
    (files.irqs / DEFAULT).write_text("ff\n")
    default, _, _, acpi, _ = files.read(again=True)
    assert files.write(acpi, TO_WRITE) == TO_WRITE
    assert (files.irqs / "9" / "smp_affinity_list").read_text() == "0-1\n"
    assert files.write(default, TO_WRITE) == TO_WRITE
    assert (files.irqs / DEFAULT).read_text() == "00000003\n"


def test_whose_an_interrupt_is_is_remembered_until_it_is_asked_again(files: KernelMasks) -> None:
    *_, before = files.read(again=True)
    (files.irqs / "30" / "eth0-rx").rename(files.irqs / "30" / "nvme0q1")
    assert files.read(again=False)[-1] == before
    with pytest.raises(MaskGoneError):
        files.write(before, TO_WRITE)
    assert str(files.read(again=False)[-1]) == "30 (nvme0q1)"
    (files.irqs / "30" / "nvme0q1").rename(files.irqs / "30" / "eth1")
    assert str(files.read(again=True)[-1]) == "30 (eth1)"


def test_another_device_is_not_written(files: KernelMasks) -> None:
    with pytest.raises(MaskGoneError):
        files.write(Mask("9", TO_WRITE, frozenset({"eth0-tx"})), TO_WRITE)
    with pytest.raises(MaskGoneError):
        files.write(Mask("11", TO_WRITE), TO_WRITE)


def test_what_the_kernel_does_not_take_is_a_refusal_of_one_mask(files: KernelMasks) -> None:
    acpi = files.read(again=True)[3]
    path = files.irqs / "9" / "smp_affinity_list"
    path.unlink()
    path.symlink_to(files.irqs / "30" / "smp_affinity_list")
    with pytest.raises(MaskRefusedError, match="ELOOP"):
        files.write(acpi, TO_WRITE)


def test_where_an_interrupt_occurs(files: KernelMasks) -> None:
    default, *_, acpi, eth = files.read(again=True)
    assert files.read_effective(acpi) == CpuSet.parse("2")
    (files.irqs / "30" / "effective_affinity_list").unlink()
    assert files.read_effective(eth) == CpuSet.parse("0-3")
    assert files.read_effective(default) == default.cpus


def test_no_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InterruptsError, match="cannot be read"):
        KernelMasks(tmp_path / "irq", tmp_path).read(again=True)
