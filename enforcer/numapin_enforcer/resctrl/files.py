"""Reads and writes groups of resctrl."""

import errno
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_enforcer.resctrl.folder import Folder
from numapin_enforcer.resctrl.values import (
    BANDWIDTH,
    CACHES,
    GROUP,
    Group,
    Kernel,
    Key,
    Steps,
    Values,
    Ways,
)

COUNTERS: Final = ("llc_occupancy", "mbm_total_bytes", "mbm_local_bytes")

_MASK: Final = re.compile(r"[0-9a-f]{1,16}")
_NUMBER: Final = re.compile(r"[0-9]{1,20}")
_CACHE: Final = re.compile(r"mon_L3_([0-9]{1,10})")
_WITH_LOCKS: Final = frozenset({"pseudo-locked", "pseudo-locksetup"})
_READ_ONLY: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_MOUNT: Final = (
    "mount resctrl on the node (mount -t resctrl resctrl /sys/fs/resctrl) and then into the "
    "enforcer: the component resctrl, or resctrl.enabled of the chart"
)


class ResctrlError(Exception):
    """Nothing can be read, or nothing written; the message says what to do."""


class RefusedError(Exception):
    """The kernel refuses one write, and has changed nothing."""


@dataclass(frozen=True, slots=True)
class Resctrl:
    """Groups as values.

    Attributes:
        folder: the mount.
    """

    folder: Folder

    def read(self) -> Kernel:
        """Everything that a plan needs.

        Raises:
            ResctrlError: there is no resctrl, or it says what no kernel says.
        """
        try:
            default = self._default()
            groups = tuple(self._groups())
            return Kernel(default, groups, self._ways(default), self._steps(default))
        except OSError as error:
            raise ResctrlError(f"resctrl cannot be read ({_name(error)}): {_MOUNT}") from error
        except ValueError as error:
            raise ResctrlError(f"resctrl says what numapin cannot read: {error}") from error

    def make(self) -> None:
        """Make our group.

        Raises:
            RefusedError: the kernel has no room for another one.
            ResctrlError: it can be written by nobody here.
        """
        with self._writing(f"the group {GROUP} is not made"):
            self.folder.make(GROUP)

    def remove(self) -> None:
        """Remove our group: its CPUs fall to the default group. Raises as `make`."""
        with self._writing(f"the group {GROUP} is not removed"), suppress(FileNotFoundError):
            self.folder.remove(GROUP)

    def write_values(self, group: str, line: str, values: Values) -> None:
        """Set one line of a group (the default one: empty). Raises as `make`."""
        shown = ";".join(f"{id_}={_text(line, value)}" for (_, id_), value in values.items())
        with self._writing(f"{group or 'the default group'} does not get {line}:{shown}"):
            self.folder.write(_path(group, "schemata"), f"{line}:{shown}\n")

    def write_cpus(self, cpus: CpuSet) -> None:
        """Set the CPUs of our group. Raises as `make`."""
        with self._writing(f"the group {GROUP} does not get CPUs {cpus}"):
            self.folder.write(_path(GROUP, "cpus_list"), f"{cpus}\n")

    def counters(self) -> dict[tuple[str, int], int]:
        """What the hardware has counted for our group: by the file's name and the cache.

        What it does not know at this moment is left out; nothing if there is no such group.
        """
        found: dict[tuple[str, int], int] = {}
        with suppress(OSError):
            for name in self.folder.counted(GROUP):
                if match := _CACHE.fullmatch(name):
                    found |= self._counted(name, int(match[1]))
        return found

    def _counted(self, name: str, cache: int) -> Iterator[tuple[tuple[str, int], int]]:
        for one in COUNTERS:
            with suppress(OSError, ValueError):
                text = self.folder.read(f"{GROUP}/mon_data/{name}/{one}")
                yield (one, cache), _number(text.strip())

    def _default(self) -> dict[Key, int]:
        """The default group; hardware that only counts has nothing to share out."""
        try:
            return parse_schemata(self.folder.read("schemata"))
        except FileNotFoundError:
            self.folder.read("info/last_cmd_status")
            return {}

    def _groups(self) -> Iterator[Group]:
        for name in self.folder.groups():
            with suppress(FileNotFoundError):  # it was removed meanwhile
                yield self._group(name)

    def _group(self, name: str) -> Group:
        """A group; one with a lock has no CPUs, and its ways are in no other group."""
        mode = self.folder.read(_path(name, "mode")).strip()
        if mode in _WITH_LOCKS:
            if name == GROUP:
                raise ValueError(f"the group {GROUP} of its own is {mode}; remove that group")
            return Group(name)
        cpus = CpuSet.parse(self.folder.read(_path(name, "cpus_list")).strip())
        return Group(name, cpus, parse_schemata(self.folder.read(_path(name, "schemata"))))

    def _ways(self, default: Values) -> Ways | None:
        line = next((one for one in CACHES if any(key[0] == one for key in default)), None)
        if line is None:
            return None
        whole = _mask(self._info(line, "cbm_mask"))
        sparse = False
        with suppress(FileNotFoundError):  # older than Linux 6.7
            sparse = self._info(line, "sparse_masks") == "1"
        least, hardware = self._info(line, "min_cbm_bits"), self._info(line, "shareable_bits")
        return Ways(whole, max(_number(least), 1), _mask(hardware), sparse)

    def _steps(self, default: Values) -> Steps | None:
        """Absent where values are no percentages: on AMD, and if resctrl has `mba_MBps`."""
        values = [value for (line, _), value in default.items() if line == BANDWIDTH]
        if not values or max(values) > 100:
            return None
        if self._info(BANDWIDTH, "delay_linear") != "1":
            return None
        least, step = (
            self._info(BANDWIDTH, "min_bandwidth"),
            self._info(BANDWIDTH, "bandwidth_gran"),
        )
        return Steps(_number(least), max(_number(step), 1))

    def _info(self, line: str, name: str) -> str:
        return self.folder.read(f"info/{line}/{name}").strip()

    @contextmanager
    def _writing(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in _READ_ONLY:
                raise ResctrlError(f"{what} ({_name(error)}): {_MOUNT}") from error
            raise RefusedError(f"{what} ({_name(error)}{self._why()})") from error

    def _why(self) -> str:
        """What the kernel says of the last write."""
        with suppress(OSError):
            said = self.folder.read("info/last_cmd_status").strip().splitlines()
            return f": {said[0][:200]}" if said and said[0] != "ok" else ""
        return ""


def parse_schemata(text: str) -> dict[Key, int]:
    """The masks and percentages of a file `schemata`; lines of other resources are left out.

    Raises:
        ValueError: it is none.
    """
    found: dict[Key, int] = {}
    for each in text.splitlines():
        line, colon, values = each.strip().partition(":")
        if line not in (*CACHES, BANDWIDTH):
            continue
        for one in values.split(";"):
            id_, equals, value = one.partition("=")
            if not (colon and equals):
                raise ValueError(f"schemata {each.strip()[:80]!r}")
            key = line, _number(id_.strip())
            found[key] = _number(value.strip()) if line == BANDWIDTH else _mask(value.strip())
    return found


def schemata(values: Values) -> str:
    """Values as resctrl writes them, with a space between lines."""
    lines = groupby(sorted(values.items()), key=lambda one: one[0][0])
    return " ".join(
        f"{line}:" + ";".join(f"{id_}={_text(line, value)}" for (_, id_), value in each)
        for line, each in lines
    )


def by_line(values: Values) -> Mapping[str, Values]:
    """The values of each line."""
    found: dict[str, dict[Key, int]] = {}
    for key, value in values.items():
        found.setdefault(key[0], {})[key] = value
    return found


def _text(line: str, value: int) -> str:
    return str(value) if line == BANDWIDTH else f"{value:x}"


def _path(group: str, file: str) -> str:
    return f"{group}/{file}" if group else file


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text[:80]!r} is no number")
    return int(text)


def _mask(text: str) -> int:
    if not _MASK.fullmatch(text):
        raise ValueError(f"{text[:80]!r} is no mask")
    return int(text, 16)


def _name(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, str(error))
