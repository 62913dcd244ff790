"""A private containerd, with root, state, sockets, CNI and NRI of its own."""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from numapin_lab import cleanup
from numapin_lab.errors import LabError, MissingError
from numapin_lab.node import mounts
from numapin_lab.node.cgroups import LabCgroup
from numapin_lab.node.image import ALIASES, IMAGE, find_busybox, write_image
from numapin_lab.node.isolated_machine import IsolatedMachine
from numapin_lab.node.mount_namespace import MountNamespace
from numapin_lab.node.pod_network import PodNetwork
from numapin_lab.processes.daemons import Daemon, wait_until

START_SECONDS = 300
COMMAND_SECONDS = 240
NAMESPACE = "k8s.io"
RUNC_REMEDY = "apt-get install -y --no-install-recommends runc"
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

CONFIG = """version = 3
root = "{folder}/root"
state = "{run}/containerd"
imports = []
[grpc]
  address = "{socket}"
[ttrpc]
  address = "{socket}.ttrpc"
[plugins."io.containerd.shim.v1.manager"]
  socket_dir = "{run}/s"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "{snapshotter}"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{image}"
[plugins."io.containerd.cri.v1.runtime"]
  disable_apparmor = true
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  cdi_spec_dirs = ["{folder}/cdi"]
  [plugins."io.containerd.cri.v1.runtime".cni]
    conf_dir = "{folder}/cni/networks"
    bin_dirs = ["{plugins}"]
    use_internal_loopback = true
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      runtime_path = "{shim}"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        BinaryName = "{runc}"
        Root = "{run}/runc"
        SystemdCgroup = {systemd}
[plugins."io.containerd.nri.v1.nri"]
  disable = false
  socket_path = "{run}/nri.sock"
  plugin_path = "{folder}/nri/plugins"
  plugin_config_path = "{folder}/nri/configuration"
"""


def find_runc() -> Path:
    """Find the runc of the machine; it must be built with seccomp, which the kubelet requires.

    Raises:
        MissingError: there is none.
    """
    found = shutil.which("runc", path=SEARCH_PATH)
    if found is None:
        raise MissingError("containerd needs runc", RUNC_REMEDY)
    return Path(found)


@dataclass(frozen=True)
class Runtime:
    """containerd in `folder` (config, log, images) and `run`.

    `run` holds sockets and state. Its path must be short, because the path of a unix socket has at
    most 107 characters, and it must not survive a boot, because the containers do not. `cgroup` is
    the parent of all pods. `programs` gives containerd, its shim and ctr. With `systemd`, systemd
    creates the cgroups of containers; it must be the first process of the machine. With `machine`,
    it runs there, and its pods have a network; else they have none.
    """

    folder: Path
    run: Path
    cgroup: LabCgroup
    programs: Mapping[str, Path]
    systemd: bool = False
    machine: IsolatedMachine | None = None

    @property
    def socket(self) -> Path:
        """The socket of CRI and of containerd's own API."""
        return self.run / "containerd" / "containerd.sock"

    @property
    def nri_socket(self) -> Path:
        """The socket of NRI."""
        return self.run / "nri.sock"

    @property
    def cdi(self) -> Path:
        """The folder of CDI files, by default /var/run/cdi."""
        return self.folder / "cdi"

    @property
    def image(self) -> str:
        """An image with busybox that is already imported; it needs no pull."""
        return IMAGE

    @property
    def mount_namespace(self) -> MountNamespace:
        """The mount namespace of containerd, its shims and the kubelet."""
        return self.machine or MountNamespace(self.run)

    @property
    def daemon(self) -> Daemon:
        """The containerd process. Shims outlive it."""
        config = self.folder / "config.toml"
        command = (str(self.programs["containerd"]), f"--config={config}")
        inside = self.mount_namespace.inside(command)
        return Daemon("containerd", self.folder, inside, self.folder.parent)

    def config(self, plugins: Path) -> str:
        """The content of config.toml; `plugins` is the folder of the CNI plug-ins."""
        on = mounts.file_system(mounts.MOUNTS.read_text(), self.folder)
        return CONFIG.format(
            folder=self.folder,
            run=self.run,
            socket=self.socket,
            plugins=plugins,
            snapshotter="native" if on == "overlay" else "overlayfs",  # overlays do not nest
            image=IMAGE,
            shim=self.programs["containerd-shim-runc-v2"],
            runc=find_runc(),
            systemd=str(self.systemd).lower(),
        )

    def start(self) -> None:
        """Start it if it does not run; returns when it answers and the image is imported.

        Raises:
            MissingError: runc or busybox is missing.
            LabError: it does not start; the message holds the end of its log.
        """
        self._write_files()
        self.mount_namespace.create()
        self.cgroup.create()
        if self.daemon.pid() is None:
            self.daemon.start()
        wait_until(self._answers, "containerd", START_SECONDS, self.daemon)
        self._import_image()

    def ctr(self, *arguments: str) -> str:
        """Run `ctr` in the namespace of Kubernetes; returns its standard output.

        Raises:
            LabError: it failed; the message is its standard error.
        """
        answer = self._ctr(*arguments)
        if answer.returncode != 0:
            raise LabError(f"ctr {' '.join(arguments)}: {answer.stderr.strip()}")
        return answer.stdout

    def stop(self) -> None:
        """End containerd, containers and shims, and remove their cgroups, mounts and sockets."""
        cleanup.clear(self.folder.parent, self.run, self.cgroup)

    def _write_files(self) -> None:
        for folder in ("cdi", "nri/plugins", "nri/configuration"):
            (self.folder / folder).mkdir(parents=True, exist_ok=True)
        self.run.mkdir(mode=0o700, parents=True, exist_ok=True)
        network = PodNetwork(bridged=self.machine is not None)
        plugins = network.write(self.folder / "cni")
        (self.folder / "config.toml").write_text(self.config(plugins))

    def _ctr(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                self.programs["ctr"],
                f"--address={self.socket}",
                f"--namespace={NAMESPACE}",
                *arguments,
            ],
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def _answers(self) -> bool:
        return self.socket.exists() and self._ctr("version").returncode == 0

    def _import_image(self) -> None:
        present = self.ctr("images", "list", "--quiet").split()
        if IMAGE not in present:
            archive = self.folder / "image.tar"
            write_image(archive, find_busybox(SEARCH_PATH))
            self.ctr("images", "import", str(archive))
        for alias in ALIASES:
            if alias not in present:
                self.ctr("images", "tag", IMAGE, alias)
