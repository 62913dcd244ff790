"""Where a command gets a machine from: sys and proc, a machine file, or a folder of such files."""

from pathlib import Path

from numapin_api.hardware.machine_file import MachineFormatError, parse_machine
from numapin_api.topology import Topology
from numapin_cli.subcommand import CommandError
from numapin_enforcer.hardware.discovery import DiscoveryError, discover


def discover_below(root: Path) -> Topology:
    """Discover the machine whose `sys` and `proc` are in the folder `root`.

    Raises:
        CommandError: there is no such machine, or none of its CPUs can be read.
    """
    try:
        if not (root / "sys").is_dir():
            raise CommandError(
                f"--root {root}: there is no folder sys in it; give the folder that holds the"
                " machine's sys and proc, / for this machine"
            )
        return discover(root / "sys", root / "proc")
    except OSError as problem:
        raise CommandError(
            f"--root {root}: cannot be read ({problem.strerror}); give a folder that this user may"
            " read"
        ) from problem
    except DiscoveryError as problem:
        raise CommandError(str(problem)) from problem


def read_machine(file: Path) -> Topology:
    """Read a file that `numapin topology -o json` wrote.

    Raises:
        CommandError: it cannot be read, or holds no machine.
    """
    try:
        return parse_machine(file.read_bytes(), str(file))
    except OSError as problem:
        raise CommandError(f"{file}: {problem.strerror}; see --machine") from problem
    except MachineFormatError as problem:
        raise CommandError(str(problem)) from problem


class Machines:
    """Machines by name, each read once from `NAME.json` in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, Topology] = {}

    def find(self, name: str) -> Topology:
        """The machine of that name.

        Raises:
            MachineFormatError: its file is no machine.
            FileNotFoundError: there is no such file.
        """
        if name not in self._known:
            if Path(name).name != name or name in {".", ".."}:
                raise FileNotFoundError(name)
            file = self._folder / f"{name}.json"
            self._known[name] = parse_machine(file.read_bytes(), str(file))
        return self._known[name]

    def __str__(self) -> str:
        return str(self._folder)
