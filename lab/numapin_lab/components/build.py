"""Build components that were not found, from go.mod into the cache.

Safe when several labs start at once: one builder at a time holds a lock on the cache folder, and a
finished program appears there by one rename.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from numapin_lab.components.catalog import (
    COLLECTOR,
    COMPONENTS,
    HELM,
    KREW,
    KUBE_ROUTER,
    KUBE_SCORE,
    TOPOLOGY_UPDATER,
    Component,
    Found,
    cache_folder,
    check_choice,
    find,
)
from numapin_lab.errors import LabError, MissingError
from numapin_lab.processes.locks import locked

ATTEMPTS = 3  # the first build fetches several hundred modules, and one of them may fail
REPORT_SECONDS = 20
GO_REMEDY = "install Go 1.26 or newer from https://go.dev/dl/ and put its bin folder in PATH"

_VARIABLES = {
    HELM.name: "helm.sh/helm/v4/internal/version.version",
    KUBE_SCORE.name: "main.version",
    KREW.name: "sigs.k8s.io/krew/internal/version.gitTag",
    KUBE_ROUTER.name: "github.com/cloudnativelabs/kube-router/v2/pkg/version.Version",
    TOPOLOGY_UPDATER.name: "sigs.k8s.io/node-feature-discovery/pkg/version.version",
}
"""The variable of a program that holds its version with the leading v."""

Say = Callable[[str], None]


def say(text: str) -> None:
    """Print progress for the user to standard error; standard output is for results."""
    print(text, file=sys.stderr, flush=True)


def provide(
    names: Sequence[str], environment: Mapping[str, str] = os.environ, progress: Say = say
) -> dict[str, Found]:
    """Find every named component; build those that are missing.

    Raises:
        MissingError: a component must be built, and Go is missing.
        LabError: a build failed, and the message holds the end of its output; or
            NUMAPIN_LAB_KUBERNETES names a release that the lab does not know.
    """
    check_choice()
    found: dict[str, Found] = {}
    absent: list[Component] = []
    for name in names:
        copy, remarks = find(COMPONENTS[name], environment)
        for remark in remarks:
            progress(f"lab: {remark}")
        if copy is None:
            absent.append(COMPONENTS[name])
        else:
            found[name] = copy
    builder = Builder(environment, progress)
    for number, component in enumerate(absent, 1):
        title = f"{component.name} ({number} of {len(absent)})"
        found[component.name] = builder.build_once(component, title)
    return found


def go_arguments(component: Component, output: Path) -> list[str]:
    """The arguments of `go` that build one component into `output`."""
    flags = "-s -w"
    for name, value in _stamps(component).items():
        flags += f" -X {name}={value}"
    options = ["-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", flags]
    return ["build", *options, "-o", str(output), component.package]


def _stamps(component: Component) -> dict[str, object]:
    """The variables that hold a program's version, which its release sets so.

    Without them a server reports a version that clients cannot parse.
    """
    major, minor, patch = component.pinned()
    version = f"v{major}.{minor}.{patch}"
    if component.release == "k8s.io/kubernetes":
        package = "k8s.io/component-base/version"
        values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
        return {f"{package}.{name}": value for name, value in values.items()}
    if component is COLLECTOR:
        return {"main.version": version.removeprefix("v")}
    return {_VARIABLES[component.name]: version} if component.name in _VARIABLES else {}


def find_go(module: Path, environment: Mapping[str, str]) -> str:
    """Find a Go that can build `module`; from 1.21 on, Go fetches the release that go.mod requires.

    Raises:
        MissingError: Go is missing or too old.
    """
    go = shutil.which("go", path=environment.get("PATH", ""))
    if go is None:
        raise MissingError("the lab's components must be built, and there is no Go", GO_REMEDY)
    answer = subprocess.run(
        [go, "version"],
        cwd=module,
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    release = re.search(r"go(\d+)\.(\d+)", answer.stdout)
    wanted = re.search(r"^go (\d+)\.(\d+)", (module / "go.mod").read_text(), re.MULTILINE)
    assert wanted is not None
    if release is None or tuple(map(int, release.groups())) < tuple(map(int, wanted.groups())):
        said = (answer.stdout + answer.stderr).strip()
        raise MissingError(f"{go} is too old to build the lab's components: {said}", GO_REMEDY)
    return go


@dataclass(frozen=True)
class Builder:
    """Runs the Go tool chain of `environment`, and reports progress."""

    environment: Mapping[str, str]
    progress: Say

    def build_once(self, component: Component, title: str) -> Found:
        """Build, unless another lab did while this one waited for the lock."""
        folder = cache_folder(component, self.environment)
        built = folder / component.name
        with locked(
            folder / "lock", lambda: self.progress("lab: waiting: another lab is building")
        ):
            if os.access(built, os.X_OK):
                return Found(component, built, "cache")
            go = find_go(component.module, self.environment)
            partial = folder / f".{component.name}.{os.getpid()}"
            try:
                self._build(component, title, [go, *go_arguments(component, partial)])
                partial.replace(built)
            finally:
                partial.unlink(missing_ok=True)
        return Found(component, built, "built")

    def _build(self, component: Component, title: str, command: Sequence[str]) -> None:
        started = time.monotonic()
        log = cache_folder(component, self.environment) / f"{component.name}.log"
        self.progress(f"lab: building {title}; its output: {log}")
        for attempt in range(1, ATTEMPTS + 1):
            with log.open("wb") as output:
                status = self._run(component, title, command, output.fileno())
            if status == 0:
                self.progress(f"lab: built {title} in {time.monotonic() - started:.0f} s")
                return
            self.progress(f"lab: building {title} failed, attempt {attempt} of {ATTEMPTS}")
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise LabError(f"could not build {component.name}; the end of {log}:\n{tail}")

    def _run(self, component: Component, title: str, command: Sequence[str], output: int) -> int:
        """Run to the end, and report progress at intervals; Ctrl-C ends the build."""
        started = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=component.module,
            env={**self.environment, "CGO_ENABLED": "0"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            while True:
                try:
                    return process.wait(timeout=REPORT_SECONDS)
                except subprocess.TimeoutExpired:
                    seconds = time.monotonic() - started
                    self.progress(f"lab: building {title}: {seconds:.0f} s so far")
        finally:
            process.kill()
            process.wait()
