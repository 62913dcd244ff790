"""What a lab has to remember of itself: one small file in its folder."""

import dataclasses
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from numapin_lab.errors import LabError
from numapin_lab.processes.ports import choose

NODE, VM_NODE = "lab", "numa"


@dataclass(frozen=True)
class Ports:
    """TCP ports of every part; each keeps its own over restarts."""

    etcd: int
    etcd_peer: int
    apiserver: int
    controllers: int
    scheduler: int
    kubelet: int
    kubelet_health: int
    operator: int
    enforcer: int


@dataclass(frozen=True)
class LabState:
    """Names, ports and settings of the kubelet, chosen when the lab came up first.

    `vm`: its node is a virtual machine.
    """

    id: str
    node: str
    ports: Ports
    kubelet: Mapping[str, Any] = field(default_factory=dict)
    vm: bool = False

    @property
    def name(self) -> str:
        """What the machine sees of this lab: its cgroup and its folder in /run."""
        return f"numapin-lab-{self.id}"

    @property
    def run(self) -> Path:
        """Sockets and state of the container runtime."""
        return Path("/run") / self.name

    @classmethod
    def new(cls, kubelet: Mapping[str, Any], vm: bool = False) -> Self:
        """A lab that shares nothing with any other of the machine."""
        ports = Ports(*choose(len(dataclasses.fields(Ports))))
        return cls(secrets.token_hex(4), VM_NODE if vm else NODE, ports, kubelet, vm)

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The state in `path`; None when there is no lab.

        Raises:
            LabError: the file is not what `write` wrote.
        """
        try:
            found = json.loads(path.read_text())
            ports = Ports(**found["ports"])
            return cls(
                found["id"], found["node"], ports, found.get("kubelet", {}), found.get("vm", False)
            )
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError) as error:
            raise LabError(f"{path} is not the state of a lab ({error!r}); remove it") from error

    def write(self, path: Path) -> None:
        """Keep it, all or nothing."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(dataclasses.asdict(self), indent=2) + "\n")
        partial.replace(path)
