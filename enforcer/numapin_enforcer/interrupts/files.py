"""Reads and writes the masks of interrupts and of unbound workqueues."""

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from numapin_api.cpuset import CpuSet, ListFormatError
from numapin_enforcer.interrupts.plan import DEFAULT, WORKQUEUES, Mask

_WORD_BITS: Final = 32
"""The kernel writes a bit mask in words of so many bits, with commas between."""

_READ: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_WRITE: Final = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_GONE: Final = frozenset({errno.ENOENT, errno.ENODEV})
_READ_ONLY: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_MOUNT: Final = "mount the host's: the component interrupts, or interrupts.enabled of the chart"


class InterruptsError(Exception):
    """No mask can be read, or none can be written; the message says what to do."""


class MaskRefusedError(Exception):
    """The kernel does not take one mask, and has not changed it."""


class MaskGoneError(Exception):
    """The interrupt is gone, or another device has its number now."""


class MaskFiles(Protocol):
    """The masks of a machine."""

    def read(self, *, again: bool) -> list[Mask]:
        """All masks, `DEFAULT` first.

        Args:
            again: read also whose interrupts they are, which may be remembered otherwise.

        Raises:
            InterruptsError: they cannot be read.
        """
        ...

    def read_effective(self, mask: Mask) -> CpuSet:
        """The CPUs on which an interrupt occurs now; empty if it has not begun."""
        ...

    def write(self, mask: Mask, cpus: CpuSet) -> CpuSet:
        """Ask the kernel for other CPUs; returns what it says then.

        Raises:
            MaskRefusedError: the kernel does not take them.
            MaskGoneError: there is nothing to write to.
            InterruptsError: no mask can be written.
        """
        ...


@dataclass(frozen=True, slots=True)
class KernelMasks:
    """The files of the kernel.

    Attributes:
        irqs: the host's `/proc/irq`.
        workqueues: the host's `/sys/devices/virtual/workqueue`.
    """

    irqs: Path
    workqueues: Path
    _owners: dict[str, tuple[frozenset[str], int]] = field(default_factory=dict, init=False)
    """Names and NUMA node of interrupts with a handler: two thirds of the time of a read."""

    def read(self, *, again: bool) -> list[Mask]:
        """All masks. What disappears meanwhile is left out; see `MaskFiles`."""
        if again:
            self._owners.clear()
        try:
            with os.scandir(self.irqs) as entries:
                numbers = sorted((one.name for one in entries if one.name.isdigit()), key=int)
        except OSError as error:
            raise InterruptsError(f"{self.irqs} cannot be read: {error.strerror}") from error
        masks = [*self._bit_masks()]
        for number in numbers:
            with suppress(OSError, ValueError):
                masks.append(self._interrupt(number))
        return masks

    def read_effective(self, mask: Mask) -> CpuSet:
        """See `MaskFiles`. A kernel without this file has the interrupt wherever it may be."""
        if not mask.key.isdigit():
            return mask.cpus
        folder = f"{self.irqs}/{mask.key}"
        with suppress(OSError, ValueError):
            return CpuSet.parse(_read(f"{folder}/effective_affinity_list"))
        return mask.cpus

    def write(self, mask: Mask, cpus: CpuSet) -> CpuSet:
        """See `MaskFiles`. The device is compared at the last moment."""
        is_number = mask.key.isdigit()
        path = f"{self.irqs}/{mask.key}/smp_affinity_list" if is_number else self._path(mask.key)
        try:
            if is_number and self._names(mask.key) != mask.names:
                self._owners.pop(mask.key, None)
                raise MaskGoneError(f"interrupt {mask}")
            _write(path, str(cpus) if is_number else bit_mask(cpus))
            return CpuSet.parse(_read(path)) if is_number else parse_bit_mask(self._text(mask.key))
        except OSError as error:
            raise _error_of(error, mask, path) from error
        except ValueError as error:
            raise MaskRefusedError(f"the kernel answers {error}") from error

    def _bit_masks(self) -> Iterator[Mask]:
        """The default, and that of workqueues where there is one."""
        for key in (DEFAULT, WORKQUEUES):
            with suppress(FileNotFoundError):
                try:
                    yield Mask(key, parse_bit_mask(self._text(key)))
                except PermissionError as error:
                    raise InterruptsError(f"{self._path(key)} cannot be read: EACCES") from error

    def _text(self, key: str) -> str:
        """What was asked for; newer kernels show beside it what partitions leave of it."""
        path = self._path(key)
        with suppress(FileNotFoundError):
            return _read(f"{path}_requested")
        return _read(path)

    def _path(self, key: str) -> str:
        return f"{self.workqueues}/cpumask" if key == WORKQUEUES else f"{self.irqs}/{key}"

    def _interrupt(self, number: str) -> Mask:
        folder = f"{self.irqs}/{number}"
        cpus = CpuSet.parse(_read(f"{folder}/smp_affinity_list"))
        if number not in self._owners:
            names, numa_node = self._names(number), int(_read(f"{folder}/node"))
            if not names:
                return Mask(number, cpus)
            self._owners[number] = (names, numa_node)
        return Mask(number, cpus, *self._owners[number])

    def _names(self, number: str) -> frozenset[str]:
        """The handlers of an interrupt: a folder each."""
        try:
            with os.scandir(f"{self.irqs}/{number}") as entries:
                return frozenset(one.name for one in entries if one.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return frozenset()


def parse_bit_mask(text: str) -> CpuSet:
    """A set from the kernel's bit mask, such as `ff,ffffffff`.

    Raises:
        ListFormatError: it is none.
    """
    try:
        return CpuSet.from_mask(int(text.replace(",", ""), 16))
    except ValueError as error:
        raise ListFormatError(text, "it is not a bit mask") from error


def bit_mask(cpus: CpuSet) -> str:
    """The kernel's bit mask of a set."""
    words, left = [], cpus.mask
    while left:
        words.append(f"{left & 0xFFFFFFFF:08x}")
        left >>= _WORD_BITS
    return ",".join(reversed(words)) or "0"


def _read(path: str) -> str:
    file = os.open(path, _READ)
    try:
        return os.read(file, 65536).decode("ascii").strip()
    finally:
        os.close(file)


def _write(path: str, text: str) -> None:
    file = os.open(path, _WRITE)
    try:
        os.write(file, f"{text}\n".encode("ascii"))
    finally:
        os.close(file)


def _error_of(error: OSError, mask: Mask, path: str) -> Exception:
    """The error for an errno; a refusal of one mask affects that mask alone."""
    number = error.errno or 0
    name = errno.errorcode.get(number, str(number))
    if number in _GONE:
        return MaskGoneError(path)
    is_of_all = number in _READ_ONLY if mask.key == DEFAULT else number == errno.EROFS
    if is_of_all and mask.key != WORKQUEUES:
        return InterruptsError(f"{path} cannot be written ({name}): {_MOUNT}")
    if number in _READ_ONLY and mask.key == WORKQUEUES:
        return MaskRefusedError(f"it cannot be written ({name}): {_MOUNT}")
    return MaskRefusedError(f"the kernel does not change it ({name})")
