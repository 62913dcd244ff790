"""The network of pods: none, or a bridge in the network namespace of an isolated machine."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numapin_lab.errors import MissingError

# Where distributions and Kubernetes have the plug-ins.
PLUGIN_FOLDERS = (Path("/usr/lib/cni"), Path("/usr/libexec/cni"), Path("/opt/cni/bin"))
PLUGINS = ("bridge", "host-local")
PLUGINS_REMEDY = "apt-get install -y --no-install-recommends containernetworking-plugins"
# For measurements of networks (RFC 2544), so that no machine has such an address.
POD_RANGE = "198.18.0.0/16"
BRIDGE = "numapin-pods"
CONFIGURATION = "10-lab.conflist"

CNI_PLUGIN = """#!/bin/sh
# Gives every pod one address and no network: nothing here needs any.
case "$CNI_COMMAND" in
ADD) echo '{"cniVersion":"0.4.0","interfaces":[{"name":"eth0","sandbox":"'"$CNI_NETNS"'"}],'\\
'"ips":[{"version":"4","address":"10.88.0.2/16","interface":0}]}';;
VERSION) echo '{"cniVersion":"0.4.0","supportedVersions":["0.3.1","0.4.0"]}';;
esac
"""
NO_NETWORK = '{"cniVersion":"0.4.0","name":"lab-network","plugins":[{"type":"lab-address"}]}\n'


def find_plugins(folders: Sequence[Path] = PLUGIN_FOLDERS) -> Path:
    """Find the folder with the CNI plug-ins of the machine.

    Raises:
        MissingError: there is none.
    """
    for folder in folders:
        if all((folder / name).exists() for name in PLUGINS):
            return folder
    what = f"pods need the CNI plug-ins {' and '.join(PLUGINS)} in one of {_listed(folders)}"
    raise MissingError(what, PLUGINS_REMEDY)


def _listed(folders: Sequence[Path]) -> str:
    return ", ".join(map(str, folders))


@dataclass(frozen=True)
class PodNetwork:
    """The network of the pods of one node. `bridged`: pods reach the node, and it reaches them."""

    bridged: bool = False

    def write(self, folder: Path) -> Path:
        """Write the configuration below `folder`; returns the folder of the plug-ins.

        Raises:
            MissingError: it needs plug-ins that the machine does not have.
        """
        networks = folder / "networks"
        networks.mkdir(parents=True, exist_ok=True)
        # No file here may have the network's name: containerd would take it for a folder.
        text = json.dumps(bridge()) if self.bridged else NO_NETWORK
        (networks / CONFIGURATION).write_text(text)
        if self.bridged:
            return find_plugins()
        plugin = folder / "bin" / "lab-address"
        plugin.parent.mkdir(exist_ok=True)
        plugin.write_text(CNI_PLUGIN)
        plugin.chmod(0o755)
        return plugin.parent


def bridge() -> dict[str, Any]:
    """A bridge that is the pods' gateway. Source: the CNI plug-ins' documentation, "bridge"."""
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": POD_RANGE}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    plugin = {"type": "bridge", "bridge": BRIDGE, "isGateway": True, "ipam": addresses}
    return {"cniVersion": "0.4.0", "name": "lab-network", "plugins": [plugin]}
