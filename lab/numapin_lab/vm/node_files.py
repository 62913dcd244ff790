"""The files of a node in a virtual machine: a small root with kubelet and containerd.

Only runc, its libraries and busybox are copied from the host's root.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from numapin_lab.controlplane import kubeconfig
from numapin_lab.controlplane.certificates import Authority, Identity
from numapin_lab.controlplane.servers import GUEST_PORT, GUEST_SERVER
from numapin_lab.errors import LabError, MissingError
from numapin_lab.node.containerd import CONFIG, SEARCH_PATH, find_runc
from numapin_lab.node.image import IMAGE, applets_of, find_busybox, write_image
from numapin_lab.node.kubelet import EVERYWHERE, access_fields
from numapin_lab.node.pod_network import CNI_PLUGIN, NO_NETWORK
from numapin_lab.state import VM_NODE as NODE
from numapin_lab.vm import systemd_node
from numapin_lab.vm.guest_shell import SHELL

ADDRESS = "10.0.2.15"
KUBELET_PORT = 10250
PROGRAMS = ("kubelet", "containerd", "containerd-shim-runc-v2", "ctr")
PKI = Path("/etc/kubernetes/pki")
STATE = Path("/run/node")
SOCKET = STATE / "containerd.sock"
NRI_SOCKET = STATE / "nri.sock"
KUBELET_ROOT = STATE / "kubelet"
MKFS_REMEDY = "apt-get install -y --no-install-recommends e2fsprogs"
MKFS_SECONDS = 120
MIB = 1 << 20
FOLDERS = (
    *("bin", "dev", "etc", "host", "proc", "root", "run", "sbin", "sys", "tmp"),
    *("usr/bin", "usr/sbin", "var/lib", "var/log"),
)

PREPARE = f"mkdir -p {STATE}; cp -a /opt/node/. {STATE}"
START_CONTAINERD = f"""#!/bin/sh
{PREPARE}
setsid containerd --config=/etc/containerd.toml >>/run/containerd.log 2>&1 </dev/null &
echo $! >/run/containerd.pid
"""
ETC = "/etc/kubernetes"
KUBELET = f"""kubelet --config={ETC}/kubelet.yaml --kubeconfig={ETC}/kubeconfig \\
  --root-dir={KUBELET_ROOT} --cert-dir={KUBELET_ROOT}/pki --hostname-override={NODE} \\
  --node-ip={ADDRESS} --v=2"""
START_KUBELET = f"""#!/bin/sh
setsid {KUBELET} >>/run/kubelet.log 2>&1 </dev/null &
echo $! >/run/kubelet.pid
"""
STOP_KUBELET = """#!/bin/sh
pid=$(cat /run/kubelet.pid); kill $pid
for _ in $(seq 300); do kill -0 $pid 2>/dev/null || exit 0; sleep .1; done
kill -9 $pid
"""


@dataclass(frozen=True)
class NodeFiles:
    """The root folder of a node.

    `programs`: paths of the components. `systemd`: it is process 1 and the cgroup driver.
    """

    programs: Mapping[str, Path]
    systemd: bool = False

    def sources(self) -> list[Path]:
        """Every file of this machine that is copied, in a fixed order."""
        programs = [self.programs[name] for name in PROGRAMS]
        return [*programs, find_busybox(SEARCH_PATH), find_runc(), *self._at_same_path()]

    def _at_same_path(self) -> Iterator[Path]:
        """The files that have the same path on the node as on this machine."""
        yield from libraries(find_runc())
        for file in systemd_node.sources() if self.systemd else ():
            yield file
            yield from libraries(file)

    def written(self) -> dict[str, str]:
        """Every file that is written, by its path."""
        return {
            "etc/containerd.toml": CONFIG.format(
                folder=STATE,
                run=STATE,
                socket=SOCKET,
                plugins=STATE / "cni/bin",
                snapshotter="overlayfs",
                image=IMAGE,
                shim="/usr/bin/containerd-shim-runc-v2",
                runc="/usr/sbin/runc",
                systemd=str(self.systemd).lower(),
            ),
            "etc/kubernetes/kubelet.yaml": yaml.safe_dump(kubelet_config(self.systemd)),
            "etc/kubernetes/kubeconfig": yaml.safe_dump(_login()),
            "etc/hosts": "127.0.0.1 localhost\n",
            "etc/machine-id": "0123456789abcdef0123456789abcdef\n",
            "etc/os-release": "ID=numapin-lab\nPRETTY_NAME=numapin-lab\n",
            "etc/passwd": "root:x:0:0::/root:/bin/sh\n",
            "etc/group": "root:x:0:\n",
            "etc/resolv.conf": "",
            "opt/node/cni/networks/10-lab.conflist": NO_NETWORK,
            "opt/node/cni/bin/lab-address": CNI_PLUGIN,
            "sbin/agent": SHELL,
            "sbin/start-containerd": START_CONTAINERD,
            "sbin/start-kubelet": START_KUBELET,
            "sbin/stop-kubelet": STOP_KUBELET,
            **(systemd_node.written(PREPARE, KUBELET) if self.systemd else {}),
        }

    def write_disk(self, image: Path, authority: Authority) -> None:
        """Create an ext4 image of the root, with certificates that `authority` signs.

        Raises:
            MissingError: mkfs.ext4 is missing.
            LabError: mkfs.ext4 failed; the message is its output.
        """
        mkfs = shutil.which("mkfs.ext4", path=SEARCH_PATH)
        if mkfs is None:
            raise MissingError("the virtual node's disk is made with mkfs.ext4", MKFS_REMEDY)
        with tempfile.TemporaryDirectory(prefix="numapin-node-") as name:
            root = Path(name)
            self._write_root(root, authority)
            size = sum(file.lstat().st_size for file in root.rglob("*")) // MIB * 11 // 10 + 24
            options = ["-q", "-O", "^has_journal", "-d", str(root), str(image), f"{size}M"]
            answer = subprocess.run(
                [mkfs, *options],
                capture_output=True,
                text=True,
                check=False,
                timeout=MKFS_SECONDS,
                stdin=subprocess.DEVNULL,
            )
        if answer.returncode != 0:
            raise LabError(f"mkfs.ext4: {answer.stderr.strip()}")

    def _write_root(self, root: Path, authority: Authority) -> None:
        for folder in FOLDERS:
            (root / folder).mkdir(parents=True, exist_ok=True)
        busybox = find_busybox(SEARCH_PATH)
        _copy(busybox, root / "bin/busybox")
        for applet in applets_of(busybox):
            if applet != "busybox":
                (root / "bin" / applet).symlink_to("busybox")
        for program in PROGRAMS:
            _copy(self.programs[program], root / "usr/bin" / program)
        _copy(find_runc(), root / "usr/sbin/runc")
        for file in self._at_same_path():
            _copy(file, root / str(file).lstrip("/"))
        for path, text in self.written().items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(0o755 if text.startswith("#!") else 0o644)
        write_image(root / "opt/image.tar", busybox)
        for file in certificates(authority):
            _copy(file, root / str(PKI).lstrip("/") / file.name)


def certificates(authority: Authority) -> list[Path]:
    """The certificates of the kubelet, and the authority it trusts; created on the first call."""
    authority.create()
    user = Identity(f"system:node:{NODE}", ("system:nodes",))
    server = Identity(NODE, hosts=(NODE, ADDRESS))
    return [
        authority.certificate,
        *authority.issue("kubelet", user),
        *authority.issue("kubelet-server", server),
    ]


def kubelet_config(systemd: bool = False) -> dict[str, Any]:
    """The content of its KubeletConfiguration; `systemd`: that is the cgroup driver."""
    return {
        **EVERYWHERE,
        **(systemd_node.DRIVER if systemd else {}),
        **access_fields(PKI, PKI / "ca.crt"),
        "port": KUBELET_PORT,
        "cgroupRoot": "/",
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "podLogsDir": "/run/pods",
        "volumePluginDir": str(KUBELET_ROOT / "volume-plugins"),
        # The machine is emulated and slow, and must connect to a new API server within seconds.
        "runtimeRequestTimeout": "10m",
        "nodeLeaseDurationSeconds": 8,
    }


def libraries(program: Path) -> Iterator[Path]:
    """The shared libraries of a program, by the paths it loads them from. Source: ldd(1)."""
    answer = subprocess.run(
        ["ldd", program], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    for found in re.finditer(r"(/\S+) \(0x", answer.stdout):
        yield Path(found[1])


def _login() -> dict[str, Any]:
    server = f"https://{GUEST_SERVER}:{GUEST_PORT}"
    user = {
        "client-certificate": str(PKI / "kubelet.crt"),
        "client-key": str(PKI / "kubelet.key"),
    }
    return kubeconfig.render(server, PKI / "ca.crt", user)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source.resolve(), target)
