"""The state of a lab: one small file in its folder."""

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
    """TCP ports of every part; a part has the same port after a restart."""

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
    """Names, ports and settings of the kubelet, chosen when the lab was first brought up.

    `vm`: the node is a virtual machine. `pods`: numapin runs as pods, from its manifests.
    `systemd`: that is process 1 of the virtual machine and the cgroup driver.
    """

    id: str
    node: str
    ports: Ports
    kubelet: Mapping[str, Any] = field(default_factory=dict)
    vm: bool = False
    pods: bool = False
    systemd: bool = False

    @property
    def name(self) -> str:
        """The name of the lab's cgroup and of its folder in /run."""
        return f"numapin-lab-{self.id}"

    @property
    def run(self) -> Path:
        """The folder with sockets and state of the container runtime."""
        return Path("/run") / self.name

    @classmethod
    def new(
        cls,
        kubelet: Mapping[str, Any],
        vm: bool = False,
        pods: bool = False,
        systemd: bool = False,
    ) -> Self:
        """Choose a state that no other lab of this machine has."""
        ports = Ports(*choose(len(dataclasses.fields(Ports))))
        node = VM_NODE if vm else NODE
        return cls(secrets.token_hex(4), node, ports, kubelet, vm, pods, systemd)

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read the state in `path`; None without a lab.

        Raises:
            LabError: the file was not written by `write`.
        """
        try:
            found = json.loads(path.read_text())
            ports = Ports(**found["ports"])
            kinds = (found.get(kind, False) for kind in ("vm", "pods", "systemd"))
            return cls(found["id"], found["node"], ports, found.get("kubelet", {}), *kinds)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError) as error:
            raise LabError(f"{path} is not the state of a lab ({error!r}); remove it") from error

    def write(self, path: Path) -> None:
        """Write the file as a whole."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(dataclasses.asdict(self), indent=2) + "\n")
        partial.replace(path)
