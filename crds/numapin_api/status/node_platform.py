"""What a NodeAssignment's status says of the node's software."""

from typing import Literal

from pydantic import Field

from numapin_api.meta.wire import WireModel


class CgroupStatus(WireModel):
    """The cgroup version and driver of the node."""

    version: Literal[1, 2] = Field(description="The cgroup version: 1 or 2.")
    driver: Literal["cgroupfs", "systemd"] = Field(description="The kubelet's cgroup driver.")


class RuntimeStatus(WireModel):
    """The container runtime of the node."""

    name: str = Field(description="The name of the runtime, such as containerd.", max_length=128)
    version: str = Field(description="The version of the runtime.", max_length=128)
