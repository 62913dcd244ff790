"""The devices that a plug-in offers, as a file that a test may change. Does no I/O."""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Device:
    """One device; without `numa_nodes` the plug-in gives it no topology."""

    id: str
    numa_nodes: tuple[int, ...] = ()
    healthy: bool = True

    @classmethod
    def parse(cls, text: str) -> "Device":
        """Parse `ID` or `ID@NODES`, such as `gpu0@0` or `gpu2@0,1`.

        Raises:
            ValueError: the id is empty, or a NUMA node is no number.
        """
        id_, _, nodes = text.partition("@")
        if not id_:
            raise ValueError(f"{text!r} is no device: write it like gpu0@0")
        return cls(id_, tuple(int(one) for one in nodes.split(",") if one))


def dump(devices: tuple[Device, ...]) -> str:
    """The content of the file."""
    return json.dumps([asdict(one) for one in devices])


def load(text: str) -> tuple[Device, ...]:
    """The devices of the file."""
    return tuple(
        Device(one["id"], tuple(one["numa_nodes"]), one["healthy"]) for one in json.loads(text)
    )
