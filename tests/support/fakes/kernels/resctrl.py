"""A mounted resctrl, which refuses what the kernel refuses, in the kernel's words.

Source: Linux fs/resctrl/rdtgroup.c (`rdtgroup_mkdir_ctrl_mon`, `__init_one_rdt_domain`,
`rdtgroup_cpus_write`, `rdtgroup_mode_write`, `rdtgroup_rmdir_ctrl`) and ctrlmondata.c
(`cbm_validate`, `bw_validate`, `parse_cbm`, `rdtgroup_schemata_write`, `show_doms`).
"""

import errno
from dataclasses import dataclass, field

from numapin_api.cpuset import CpuSet

CODE_AND_DATA = ("L3CODE", "L3DATA")


class KilledError(BaseException):
    """The process ends here."""


@dataclass
class FakeGroup:
    """One group: its CPUs, its values by line and cache, and its mode."""

    cpus: CpuSet = CpuSet()
    values: dict[tuple[str, int], int] = field(default_factory=dict)
    mode: str = "shareable"


@dataclass
class FakeResctrl:
    """The mount of a machine.

    Attributes:
        online: its online CPUs.
        caches: the ids of its L3 caches.
        ways: of each; `least`, `hardware` and `sparse` are min_cbm_bits, shareable_bits and
            sparse_masks.
        closids: so many groups there can be, the default one included.
        lines: what a cache is divided by; none on hardware without cache allocation.
        bandwidth: the values of MB of a new group: percent, MiB/s, or multiples of 1/8 GB/s; 0
            without bandwidth allocation.
        step: bandwidth_gran and min_bandwidth.
        rounded_to: what the hardware makes of each percentage below 100; 0: the next step.
        dies_after: so many writes are made before the process is killed.
    """

    online: CpuSet
    caches: tuple[int, ...] = (0, 1)
    ways: int = 11
    least: int = 1
    hardware: int = 0x600
    sparse: bool = False
    closids: int = 4
    lines: tuple[str, ...] = ("L3",)
    bandwidth: int = 100
    step: int = 10
    rounded_to: int = 0
    read_only: bool = False
    mounted: bool = True
    counts: dict[str, str] = field(default_factory=dict)
    said: str = "ok"
    writes: list[str] = field(default_factory=list)
    reads: int = 0
    dies_after: int | None = None
    all_groups: dict[str, FakeGroup] = field(init=False)

    def __post_init__(self) -> None:
        self.all_groups = {"": FakeGroup(self.online, self._initial())}

    @property
    def default(self) -> FakeGroup:
        return self.all_groups[""]

    def everything(self) -> object:
        """All that may be restored: the values and CPUs of each group."""
        return {
            name: (one.cpus, dict(one.values), one.mode) for name, one in self.all_groups.items()
        }

    def read(self, path: str) -> str:
        """See `Folder`."""
        self.reads += 1
        if not self.mounted:
            raise FileNotFoundError(errno.ENOENT, path)
        if path.startswith("info/"):
            return self._info(path.removeprefix("info/"))
        if "/mon_data/" in path:
            if (text := self.counts.get(path.rpartition("/")[2])) is None:
                raise FileNotFoundError(errno.ENOENT, path)
            return f"{text}\n"
        group, _, file = path.rpartition("/")
        if group not in self.all_groups or (file == "schemata" and not self._lines()):
            raise FileNotFoundError(errno.ENOENT, path)
        return self._file(self.all_groups[group], file)

    def groups(self) -> list[str]:
        """See `Folder`."""
        if not self.mounted:
            raise FileNotFoundError(errno.ENOENT, "resctrl")
        return sorted(one for one in self.all_groups if one)

    def counted(self, group: str) -> list[str]:
        """See `Folder`."""
        return (
            []
            if group not in self.all_groups or not self.counts
            else [f"mon_L3_{cache:02}" for cache in self.caches]
        )

    def make(self, group: str) -> None:
        """See `Folder`."""
        self._begin(f"mkdir {group}")
        if group in self.all_groups:
            raise FileExistsError(errno.EEXIST, group)
        if not self._lines():
            raise PermissionError(errno.EPERM, group)
        if len(self.all_groups) >= self.closids:
            self._refuse("Out of CLOSIDs", errno.ENOSPC)
        self.all_groups[group] = FakeGroup(values=self._initial())

    def remove(self, group: str) -> None:
        """See `Folder`: CPUs fall to the default group."""
        self._begin(f"rmdir {group}")
        if group not in self.all_groups:
            raise FileNotFoundError(errno.ENOENT, group)
        gone = self.all_groups.pop(group)
        self.default.cpus |= gone.cpus

    def write(self, path: str, text: str) -> None:
        """See `Folder`."""
        self._begin(f"{path} {text.strip()}")
        group, _, file = path.rpartition("/")
        if group not in self.all_groups:
            raise FileNotFoundError(errno.ENOENT, path)
        if not text.endswith("\n"):
            self._refuse("", errno.EINVAL)
        one = self.all_groups[group]
        if file == "cpus_list":
            self._write_cpus(one, text.strip())
        elif file == "mode":
            self._write_mode(one, text.strip())
        else:
            assert file == "schemata"
            self._write_schemata(one, text)

    def lose(self, cpus: CpuSet) -> None:
        """CPUs go offline: they leave their groups."""
        self.online -= cpus
        for one in self.all_groups.values():
            one.cpus -= cpus

    def _begin(self, what: str) -> None:
        if not self.mounted:
            raise FileNotFoundError(errno.ENOENT, what)
        if self.read_only:
            raise OSError(errno.EROFS, what)
        if self.dies_after is not None and len(self.writes) >= self.dies_after:
            raise KilledError
        self.said = "ok"
        self.writes.append(what)

    def _refuse(self, said: str, number: int = errno.EINVAL) -> None:
        self.said = said or self.said
        raise OSError(number, said)

    def _lines(self) -> list[str]:
        return [*self.lines, *(["MB"] if self.bandwidth else [])]

    def _initial(self) -> dict[tuple[str, int], int]:
        """All ways that are in no exclusive group, and all bandwidth."""
        whole = (1 << self.ways) - 1
        found = {}
        for line in self._lines():
            for cache in self.caches:
                taken = self._taken(cache, "exclusive") if line != "MB" else 0
                found[line, cache] = self.bandwidth if line == "MB" else whole & ~taken
        return found

    def _taken(self, cache: int, *modes: str, but: FakeGroup | None = None) -> int:
        found = 0
        for one in getattr(self, "all_groups", {}).values():
            if one is not but and one.mode in modes:
                for (line, id_), value in one.values.items():
                    found |= value if line != "MB" and id_ == cache else 0
        return found

    def _info(self, name: str) -> str:
        whole = (1 << self.ways) - 1
        files = {"last_cmd_status": self.said}
        for line in self.lines:
            files |= {
                f"{line}/cbm_mask": f"{whole:x}",
                f"{line}/min_cbm_bits": str(self.least),
                f"{line}/shareable_bits": f"{self.hardware:x}",
                f"{line}/sparse_masks": str(int(self.sparse)),
            }
        if self.bandwidth:
            is_amd = self.bandwidth == 2048
            files |= {
                "MB/min_bandwidth": "0" if is_amd else str(self.step),
                "MB/bandwidth_gran": "1" if is_amd else str(self.step),
                "MB/delay_linear": "0" if is_amd else "1",
            }
        if name not in files:
            raise FileNotFoundError(errno.ENOENT, name)
        return f"{files[name]}\n"

    def _file(self, one: FakeGroup, name: str) -> str:
        if name == "mode":
            return f"{one.mode}\n"
        if name == "cpus_list":
            return f"{self.online if one.mode == 'pseudo-locked' else one.cpus}\n"
        assert name == "schemata"
        lines = self._lines()
        width = max(map(len, lines))
        if one.mode == "pseudo-locksetup":
            return "".join(f"{line}:uninitialized\n" for line in lines)
        shown = {
            line: ";".join(
                f"{cache}={value:4d}" if line == "MB" else f"{cache}={value:03x}"
                for (each, cache), value in one.values.items()
                if each == line
            )
            for line in lines
        }
        return "".join(f"{line:>{width}}:{values}\n" for line, values in shown.items() if values)

    def _write_cpus(self, one: FakeGroup, text: str) -> None:
        if one.mode.startswith("pseudo"):
            self._refuse("Pseudo-locking in progress")
        cpus = CpuSet.parse(text)
        if cpus - self.online:
            self._refuse("Can only assign online CPUs")
        if one is self.default and one.cpus - cpus:
            self._refuse("Can't drop CPUs from default group")
        self.default.cpus |= one.cpus - cpus
        for other in self.all_groups.values():
            if other is not one:
                other.cpus -= cpus
        one.cpus = cpus

    def _write_mode(self, one: FakeGroup, mode: str) -> None:
        if mode == "exclusive":
            for (line, cache), value in one.values.items():
                others = self._taken(cache, "shareable", "exclusive", but=one)
                if line != "MB" and value & (others | self.hardware):
                    self._refuse("Schemata overlaps")
        one.mode = mode

    def _write_schemata(self, one: FakeGroup, text: str) -> None:
        if one.mode == "pseudo-locked":
            self._refuse("Resource group is pseudo-locked")
        staged: dict[tuple[str, int], int] = {}
        for each in text.splitlines():
            line, _, values = each.partition(":")
            if line.strip() not in self._lines():
                self._refuse(f"Unknown or unsupported resource name '{line}'")
            for pair in filter(None, values.split(";")):
                id_, _, value = pair.partition("=")
                key = line.strip(), int(id_)
                if key not in one.values:
                    self._refuse("")
                if key in staged:
                    self._refuse(f"Duplicate domain {id_}")
                staged[key] = (
                    self._percent(value) if key[0] == "MB" else self._mask(one, key[1], value)
                )
        one.values |= staged

    def _percent(self, text: str) -> int:
        value = int(text)
        if self.bandwidth != 100:
            return value
        if not self.step <= value <= 100:
            self._refuse(f"MB value {value} out of range [{self.step},100]")
        if value < 100 and self.rounded_to:
            return self.rounded_to
        return -(-value // self.step) * self.step

    def _mask(self, one: FakeGroup, cache: int, text: str) -> int:
        value = int(text, 16)
        if not value or value >> self.ways:
            self._refuse("Mask out of range")
        runs = [run for run in f"{value:b}"[::-1].split("0") if run]
        if len(runs) > 1 and not self.sparse:
            self._refuse(f"The mask {value:x} has non-consecutive 1-bits")
        if len(runs[0]) < self.least:
            self._refuse(f"Need at least {self.least} bits in the mask")
        if value & self._taken(cache, "pseudo-locked", but=one):
            self._refuse("CBM overlaps with pseudo-locked region")
        if value & self._taken(cache, "exclusive", but=one):
            self._refuse("Overlaps with exclusive group")
        others = self._taken(cache, "shareable", but=one) | self.hardware
        if one.mode == "exclusive" and value & others:
            self._refuse("Overlaps with other group")
        return value
