#!/usr/bin/env python3
"""Install a release from its files alone, on a real one-node Kubernetes.

    .venv/bin/python release/try_release.py FOLDER

Compares the checksums; imports the images into a new lab's containerd; installs numapin first from
the one file of manifests, then from the archive of the chart; each time a pod gets a CPU of its own
and numapin is removed again. Needs root. A registry is not needed: the images get the names that
the manifests have. The exit status is 0 if all of it worked.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from numapin_api.names import NAMESPACE
from numapin_lab.components.build import provide
from numapin_lab.components.catalog import CLUSTER, HELM
from numapin_lab.errors import LabError
from numapin_lab.installed.manifests import images, wait_rolled_out
from numapin_lab.installed.release import Release, ReleasedCluster
from numapin_lab.installed.running import InstalledLab
from numapin_lab.lifecycle import LabFolder
from numapin_lab.running_lab import BUSY, pod, policy
from numapin_lab.state import LabState

GONE: Final = "--timeout=240s"


class Told:
    """Prints each step with the seconds since the beginning."""

    def __init__(self) -> None:
        """It begins now."""
        self._began = time.monotonic()

    def __call__(self, what: str) -> None:
        """Print one."""
        print(f"try_release: {time.monotonic() - self._began:4.0f} s  {what}", flush=True)


class Helm:
    """The lab's Helm, with a home of its own."""

    def __init__(self, home: Path, kubeconfig: Path) -> None:
        """Build it if it is not in the cache."""
        self._program = provide([HELM.name])[HELM.name].path
        self._environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
        self._environment["KUBECONFIG"] = str(kubeconfig)

    def __call__(self, *arguments: str) -> str:
        """Run it in numapin's namespace; returns its standard output.

        Raises:
            LabError: it failed; the message has its output.
        """
        answer = subprocess.run(
            [self._program, *arguments, f"--namespace={NAMESPACE}"],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if answer.returncode != 0:
            said = (answer.stdout + answer.stderr).strip()
            raise LabError(f"helm {' '.join(arguments)}:\n{said}")
        return answer.stdout


def pin(lab: InstalledLab) -> str:
    """Have a pod pinned beside a busy one, and remove both again; says who had which CPUs.

    Raises:
        LabError: no CPU was reported exclusive.
        AssertionError: the neighbour may use it.
    """
    lab.wait(lambda: lab.accepts(policy()), "the API server to serve CpuPolicies")
    lab.apply(pod("owner", cpu="1"), pod("neighbour", BUSY))
    lab.wait_running("owner", "neighbour")
    lab.eventually(lab.reported_exclusive, [True])
    own, shared = lab.allowed("owner"), lab.allowed("neighbour")
    assert len(own) == 1, own
    assert own.isdisjoint(shared), (own, shared)
    lab.delete("pod", "owner", "neighbour")
    lab.delete("cpupolicy", "e2e")
    lab.wait(lambda: lab.assignment() is None, "the NodeAssignment to be deleted")
    return f"pod owner had CPU {own} to itself, its neighbour {shared}"


def from_manifests(lab: InstalledLab, release: Release, tell: Callable[[str], None]) -> None:
    """The lab has applied the manifests."""
    tell(pin(lab))
    lab.kubectl("delete", "-f", str(release.manifests), GONE)
    tell(f"removed with kubectl delete -f {release.manifests.name}")


def from_chart(
    lab: InstalledLab, release: Release, helm: Helm, tell: Callable[[str], None]
) -> None:
    """Install the chart with the registry of the manifests."""
    lab.eventually(lambda: lab.kubectl("get", "crd", "-o", "name"), "")
    name = min(images(lab.cluster.documents()))
    registry = name.rpartition("/")[0]
    chosen = () if registry == "docker.io/library" else (f"--set=image.registry={registry}",)
    helm("install", "numapin", str(release.chart), "--create-namespace", *chosen)
    wait_rolled_out(lab.cluster.api, lab.kubectl)
    tell(f"helm install {release.chart.name}")
    helm("test", "numapin")
    tell("helm test")
    tell(pin(lab))
    helm("uninstall", "numapin", "--wait")
    tell("helm uninstall")


def main() -> int:
    """Try the release that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="what release/build.py has made")
    release, tell = Release(parser.parse_args().folder.resolve()), Told()
    with tempfile.TemporaryDirectory(prefix="numapin-release-") as made:
        folder = LabFolder(Path(made) / "lab", pods=True)
        try:
            release.check()
            tell(f"the checksums in {release.folder} are right")
            programs = {name: found.path for name, found in provide(CLUSTER).items()}
            state = LabState.new({}, pods=True)
            state.write(folder.path / "lab.json")
            cluster = ReleasedCluster(folder.path, state, programs)
            cluster.release = release
            cluster.up()
            tell(f"kubectl apply --server-side -f {release.manifests.name}")
            lab = InstalledLab(cluster)
            from_manifests(lab, release, tell)
            from_chart(lab, release, Helm(Path(made), folder.kubeconfig), tell)
        except (LabError, AssertionError, OSError) as error:
            print(f"try_release: {error}", file=sys.stderr)
            return 1
        finally:
            folder.down()
    tell("all of it worked")
    return 0


if __name__ == "__main__":
    sys.exit(main())
