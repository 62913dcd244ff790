"""How a bare machine is made and entered, and what its commands find."""

import subprocess
import sys
from pathlib import Path

import pytest

from numapin_lab.bare.commands import (
    Go,
    debootstrap_command,
    inside,
    machine_environment,
    named_paths,
    passed_settings,
)
from numapin_lab.bare.machine import Progress, remove, run_until_its_end
from numapin_lab.bare.options import Options, parse_options
from numapin_lab.errors import LabError
from numapin_lab.node import mounts

ROOT = Path(__file__).parents[3]
GO = Go(Path("/usr/local/go"), {"GOPROXY": "https://proxy.example,direct", "GOFLAGS": "-v"})


@pytest.mark.parametrize(
    ("arguments", "targets", "command"),
    [
        ([], ("demo", "test"), ()),
        (["demo"], ("demo",), ()),
        (["setup", "check"], ("setup", "check"), ()),
        (["--", "pytest", "--", "-x"], (), ("pytest", "--", "-x")),
        (["setup", "--", "pytest", "--keep"], ("setup",), ("pytest", "--keep")),
    ],
    ids=["both", "one", "others", "only a command", "a target and a command"],
)
def test_what_is_run(
    arguments: list[str], targets: tuple[str, ...], command: tuple[str, ...]
) -> None:
    options = parse_options(arguments)
    assert (options.targets, options.command, options.keep) == (targets, command, False)


def test_nothing_is_kept_and_nothing_is_cached_unless_asked_for() -> None:
    options = parse_options([])
    assert options == Options(
        targets=("demo", "test"),
        command=(),
        folder=Path("/var/tmp"),
        cache=None,
        keep=False,
        mirror="http://deb.debian.org/debian",
    )


@pytest.mark.parametrize("arguments", [["--"], ["--cach", "x"]], ids=["no command", "short"])
def test_a_wrong_command_line_exits_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_options(arguments)
    assert ended.value.code == 2


def test_the_command_shows_its_help() -> None:
    command = [sys.executable, "-I", "-S", str(ROOT / "lab/bare-machine"), "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout.startswith("usage: lab/bare-machine [OPTION...] [TARGET...] [-- COMMAND")


def test_debian_is_made_with_what_the_readme_asks_for() -> None:
    root = Path("/var/tmp/x/root")
    plain = parse_options(["--mirror", "http://mirror.example/debian"])
    assert debootstrap_command(root, plain) == [
        "debootstrap",
        "--variant=minbase",
        "--include=git,make,python3,python3-venv",
        "bookworm",
        "/var/tmp/x/root",
        "http://mirror.example/debian",
    ]
    cached = parse_options(["--cache", "/cache"])
    assert "--cache-dir=/cache/debian" in debootstrap_command(root, cached)


def test_only_settings_of_go_pip_proxies_and_certificates_are_passed() -> None:
    environment = {
        "GOCACHE": "/host/go-build",
        "HOME": "/home/somebody",
        "PATH": "/host/bin",
        "PIP_CACHE_DIR": "/host/pip",
        "PIP_INDEX_URL": "https://index.example",
        "PYTHONPATH": "/host",
        "SSL_CERT_FILE": "/host/certificates",
        "https_proxy": "http://proxy.example",
    }
    assert passed_settings(environment, GO) == {
        "GOFLAGS": "-v",
        "GOPROXY": "https://proxy.example,direct",
        "PIP_INDEX_URL": "https://index.example",
        "SSL_CERT_FILE": "/host/certificates",
        "https_proxy": "http://proxy.example",
    }


def test_the_environment_of_a_machine_without_caches() -> None:
    assert machine_environment({"GOFLAGS": "-v"}, GO, cached=False) == {
        "GOFLAGS": "-v",
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "PATH": "/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    }


def test_caches_are_all_in_the_one_folder() -> None:
    found = machine_environment({}, GO, cached=True)
    assert {name: found[name] for name in found if "CACHE" in name} == {
        "GOCACHE": "/var/cache/numapin/go-build",
        "GOMODCACHE": "/var/cache/numapin/go-mod",
        "NUMAPIN_LAB_CACHE": "/var/cache/numapin/lab",
        "PIP_CACHE_DIR": "/var/cache/numapin/pip",
    }


def test_files_and_folders_that_settings_name_are_found(tmp_path: Path) -> None:
    file, folder = tmp_path / "certificates", tmp_path / "wheels"
    file.touch()
    folder.mkdir()
    settings = {"A": str(file), "B": str(folder), "C": "/not/there", "D": "no path"}
    assert named_paths(settings) == ([file], [folder])


def test_a_command_is_run_in_namespaces_of_its_own() -> None:
    bound = {"/usr/local/go": ("ro", Path("/opt/go")), "/cache": ("rw", Path("/c"))}
    command = inside(Path("/m/root"), bound, ("make", "demo"), "/root")
    assert command[:6] == ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--"]
    assert command[9:] == [
        *("bare-machine", "/m/root", "/root"),
        *("ro", "/opt/go", "/usr/local/go", "rw", "/c", "/cache"),
        *("--", "make", "demo"),
    ]


@pytest.mark.parametrize(
    ("script", "expected"), [("exit 3", 3), ("kill -9 $$", 137)], ids=["exits", "is killed"]
)
def test_the_status_of_a_command_is_passed_on(script: str, expected: int) -> None:
    assert run_until_its_end(["/bin/sh", "-c", script], {}) == expected


def test_an_interrupted_command_is_waited_for() -> None:
    """It takes down what it started; then all of its process group is gone."""
    script = f"""
import os, signal, sys
sys.path.insert(0, {str(ROOT / "lab")!r})
from numapin_lab.bare.machine import run_until_its_end
inner = "trap 'echo taken down; exit 1' INT; kill -TERM $PPID; while :; do sleep 0.01; done"
status = run_until_its_end(["/bin/sh", "-c", inner], {{"PATH": os.environ["PATH"]}})
print(status, signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["taken", "down", "130", "True"]


def test_a_folder_with_mounts_in_it_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "mounts"
    folder = tmp_path / "machine"
    folder.mkdir()
    table.write_text(f"sysfs {folder}/root/sys sysfs rw 0 0\n")
    monkeypatch.setattr(mounts, "MOUNTS", table)
    with pytest.raises(LabError, match=r"is not removed, it has mounts: .*/root/sys"):
        remove(folder)
    table.write_text("sysfs /sys sysfs rw 0 0\n")
    remove(folder)
    assert not folder.exists()


def test_progress_tells_the_time_since_the_beginning(capsys: pytest.CaptureFixture[str]) -> None:
    Progress(clock=lambda: 1125.9, began=1000.0)("make demo")
    assert capsys.readouterr().err == "bare-machine:   2:05 make demo\n"
