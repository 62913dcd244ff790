"""Where components are found, and what building them means."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from numapin_lab.components.build import go_arguments, provide
from numapin_lab.components.catalog import (
    COMPONENTS,
    LAB_MODULE,
    OTHER_KUBERNETES,
    Component,
    cache_folder,
    check_choice,
    find,
    parse_version,
)
from numapin_lab.errors import LabError, MissingError

KUBELET = COMPONENTS["kubelet"]
CONTAINERD = COMPONENTS["containerd"]
RELEASES = sorted(one.parent.name for one in OTHER_KUBERNETES.glob("*/go.mod"))
GO_SAYS = 'if [ "$1" = version ]; then echo go version go1.26.8 linux/amd64; exit; fi\n'


def program(folder: Path, name: str, script: str = "true") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"PATH": f"{tmp_path / 'path'}:/usr/bin:/bin", "NUMAPIN_LAB_CACHE": str(tmp_path / "c")}


def test_the_users_assets_win_whatever_their_version(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    wanted = program(tmp_path / "assets", "kubelet", "echo Kubernetes v1.20.0")
    program(tmp_path / "path", "kubelet", "echo Kubernetes v1.36.3")
    found, remarks = find(KUBELET, {**environment, "KUBEBUILDER_ASSETS": str(tmp_path / "assets")})
    assert found is not None
    assert (found.path, found.origin, remarks) == (wanted, "KUBEBUILDER_ASSETS", [])


@pytest.mark.parametrize(
    ("component", "says", "used"),
    [
        pytest.param(KUBELET, "Kubernetes v1.36.0", True, id="same-minor-of-kubernetes"),
        pytest.param(KUBELET, "Kubernetes v1.35.9", False, id="older-minor-of-kubernetes"),
        pytest.param(KUBELET, "Kubernetes v1.37.0", False, id="newer-minor-of-kubernetes"),
        pytest.param(CONTAINERD, "containerd github.com/x 2.0.1", True, id="containerd-2"),
        pytest.param(CONTAINERD, "containerd x 1.6.20~ds1 1.6.20~ds1-1", False, id="containerd-1"),
        pytest.param(CONTAINERD, "what?", False, id="no-version"),
    ],
)
def test_what_is_on_path_is_used_if_it_fits(
    component: Component, says: str, used: bool, tmp_path: Path, environment: dict[str, str]
) -> None:
    path = program(tmp_path / "path", component.name, f"echo '{says}'")
    found, remarks = find(component, environment)
    if used:
        assert found is not None
        assert (found.path, found.origin, remarks) == (path, "PATH", [])
    else:
        assert found is None
        assert str(path) in remarks[0]
        assert component.wanted() in remarks[0]


def test_the_cache_is_searched_last(environment: dict[str, str]) -> None:
    built = program(cache_folder(KUBELET, environment), "kubelet")
    found, _ = find(KUBELET, environment)
    assert found is not None
    assert (found.path, found.origin) == (built, "cache")


def test_each_module_has_a_cache_of_its_own(environment: dict[str, str]) -> None:
    folders = {cache_folder(component, environment) for component in COMPONENTS.values()}
    assert len(folders) == len({component.module for component in COMPONENTS.values()})


def test_without_go_the_remedy_is_named(tmp_path: Path, environment: dict[str, str]) -> None:
    with pytest.raises(MissingError, match=r"must be built, .* no Go\n.*go.dev/dl"):
        provide(["kubelet"], {**environment, "PATH": str(tmp_path)}, progress=lambda _: None)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("echo go version go1.19.8 linux/amd64", id="before-it-could-fetch-another"),
        pytest.param("echo 'requires go >= 1.26.0 (GOTOOLCHAIN=local)' >&2; exit 1", id="local"),
    ],
)
def test_a_go_that_is_too_old_is_reported(
    script: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    program(tmp_path / "path", "go", script)
    with pytest.raises(MissingError, match=r"is too old .*(1.19.8|1.26.0)(.|\n)*go.dev/dl"):
        provide(["kubelet"], environment, progress=lambda _: None)


def test_a_build_that_fails_shows_the_end_of_its_output(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    program(tmp_path / "path", "go", GO_SAYS + "echo no such module; exit 1")
    lines: list[str] = []
    with pytest.raises(LabError, match=r"could not build kubelet(.|\n)*no such module"):
        provide(["kubelet"], environment, lines.append)
    assert sum("failed, attempt" in line for line in lines) == 3
    assert not [*cache_folder(KUBELET, environment).glob(".kubelet*")]


def test_a_build_appears_in_the_cache_whole(tmp_path: Path, environment: dict[str, str]) -> None:
    # The last argument but one of `go build ... -o OUTPUT PACKAGE` is where it goes.
    script = 'for a; do last=$out; out=$a; done; echo "#!/bin/sh" >"$last"; chmod 755 "$last"'
    program(tmp_path / "path", "go", GO_SAYS + script)
    lines: list[str] = []
    found = provide(["kubelet"], environment, lines.append)["kubelet"]
    assert found.origin == "built"
    assert lines[0].startswith("lab: building kubelet (1 of 1);")
    assert sorted(path.name for path in found.path.parent.iterdir()) == [
        "kubelet",
        "kubelet.log",
        "lock",
    ]
    assert provide(["kubelet"], environment, lines.append)["kubelet"].origin == "cache"


def test_labs_that_start_together_build_once(tmp_path: Path, environment: dict[str, str]) -> None:
    script = f"echo build >>{tmp_path}/builds; for a; do last=$out; out=$a; done; sleep 0.2\n"
    script += 'echo "#!/bin/sh" >"$last"; chmod 755 "$last"'
    program(tmp_path / "path", "go", GO_SAYS + script)
    with ThreadPoolExecutor() as labs:
        found = [labs.submit(provide, ["kubelet"], environment, lambda _: None) for _ in range(4)]
    assert {one.result()["kubelet"].path.name for one in found} == {"kubelet"}
    assert (tmp_path / "builds").read_text() == "build\n"


def test_another_release_of_kubernetes_must_be_pinned() -> None:
    for chosen in ("", *RELEASES):
        check_choice(chosen)
    with pytest.raises(LabError, match=r"is '1.29'; set it to 1.30 or 1.37, or not at all"):
        check_choice("1.29")


@pytest.mark.parametrize(
    "module", sorted(OTHER_KUBERNETES.glob("*/go.mod")), ids=lambda one: one.parent.name
)
def test_each_other_release_has_every_program_of_its_version(module: Path) -> None:
    text = module.read_text()
    assert f"k8s.io/kubernetes v{module.parent.name}." in text
    for component in COMPONENTS.values():
        if component.release == "k8s.io/kubernetes":
            assert f"\t{component.package}\n" in text


def test_kubernetes_is_stamped_with_its_pinned_version() -> None:
    arguments = go_arguments(KUBELET, Path("/out"))
    flags = arguments[arguments.index("-ldflags") + 1]
    assert "version.gitVersion=v1.36.3 " in flags
    assert "version.gitMinor=36" in flags
    assert arguments[-3:] == ["-o", "/out", "k8s.io/kubernetes/cmd/kubelet"]


@pytest.mark.parametrize("component", COMPONENTS.values(), ids=lambda component: component.name)
def test_every_component_is_pinned_and_a_tool_of_its_module(component: Component) -> None:
    assert component.pinned() > (0, 0, 0)
    if component.package == ".":  # a program of ours
        assert (component.module / "main.go").is_file()
    else:
        assert f"\t{component.package}\n" in (component.module / "go.mod").read_text()


@pytest.mark.parametrize(
    ("text", "version"),
    [
        pytest.param("etcd Version: 3.6.8\nGit SHA: x", (3, 6, 8), id="etcd"),
        pytest.param("ctr github.com/containerd/v2 2.4.2+unknown", (2, 4, 2), id="ctr"),
        pytest.param("gitVersion: v1.32.4-dispatcher", (1, 32, 4), id="kubectl"),
        pytest.param("go1.26", None, id="none"),
    ],
)
def test_versions_are_read_from_what_programs_say(
    text: str, version: tuple[int, int, int] | None
) -> None:
    assert parse_version(text) == version


def test_the_page_names_each_release_that_is_pinned() -> None:
    page = (LAB_MODULE.parent / "docs" / "compatibility.md").read_text()
    told = set(re.findall(r"^\| (\d+\.\d+\.\d+) \|", page, re.MULTILINE))
    modules = [LAB_MODULE, *(OTHER_KUBERNETES / one for one in RELEASES)]
    pinned = {replace(KUBELET, module=module).pinned() for module in modules}
    assert told == {".".join(map(str, version)) for version in pinned}
