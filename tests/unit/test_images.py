"""What the images contain, and what the operator's process does not load."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
CONTAINERFILE = (ROOT / "images" / "Containerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
BUILD = ROOT / "images" / "build"
PROGRAMS = ("operator", "enforcer")


def locked(name: str) -> dict[str, str]:
    """Each package of a lock with its version."""
    text = (ROOT / "images" / f"{name}.lock").read_text()
    found = re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE)
    return {canonicalize_name(package): version for package, version in found}


def stage(name: str) -> str:
    """The text of one stage of the build."""
    found = re.search(
        rf"^FROM \S+ AS {name}\n(.*?)(?=^FROM|\Z)", CONTAINERFILE, re.MULTILINE | re.DOTALL
    )
    assert found is not None
    return found[1]


def test_every_source_folder_of_the_wheel_is_copied() -> None:
    packages = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    copied = set(re.findall(r"^COPY (\w+) \w+$", stage("tools"), re.MULTILINE))
    assert copied == {path.partition("/")[0] for path in packages}


def test_the_operator_runs_as_the_user_of_its_manifest() -> None:
    manifest = (ROOT / "manifests" / "base" / "operator.yaml").read_text()
    user = re.search(r"runAsUser: (\d+)", manifest)
    assert user is not None
    assert f"USER {user[1]}:{user[1]}\n" in stage("operator")


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_image_starts_its_program(program: str) -> None:
    assert f'ENTRYPOINT ["numapin-{program}"]' in stage(program)
    assert f"numapin-{program}" in PROJECT["project"]["scripts"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_lock_has_what_the_program_needs_in_a_version_that_it_allows(program: str) -> None:
    versions = locked(program)
    extra = PROJECT["project"]["optional-dependencies"][program]
    for text in (*PROJECT["project"]["dependencies"], *extra):
        wanted = Requirement(text)
        assert versions[canonicalize_name(wanted.name)] in wanted.specifier, wanted


@pytest.mark.parametrize("name", [*PROGRAMS, "tools"])
def test_each_locked_package_has_a_hash_and_no_address(name: str) -> None:
    text = (ROOT / "images" / f"{name}.lock").read_text()
    entries = re.findall(
        r"^[\w.-]+==\S+.*\\\n(?:    --hash=sha256:[0-9a-f]{64}.*\n?)+", text, re.MULTILINE
    )
    assert len(entries) == len(locked(name)) > 0
    assert "//" not in text


def test_the_images_lack_what_only_a_person_needs() -> None:
    for program in PROGRAMS:
        assert not {"kubernetes", "rich", "pytest"} & locked(program).keys()


def test_unneeded_packages_are_not_loaded() -> None:
    code = (
        "import sys, numapin_operator.__main__\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert "kopf" in loaded
    assert not {"pykube", "opentelemetry", "grpclib", "rich"} & set(loaded)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--bse", "x"), "unknown option --bse"),
        (("--base",), "--base needs a value"),
        (("--output", "a:b"), "--output may have no colon"),
        (("standby",), "there is no image standby: operator and enforcer"),
    ],
)
def test_a_wrong_command_line_is_named(arguments: tuple[str, ...], says: str) -> None:
    done = subprocess.run([BUILD, *arguments], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_without_buildah_it_says_what_to_install(tmp_path: Path) -> None:
    for tool in ("sh", "dirname", "sed"):
        path = shutil.which(tool)
        assert path is not None
        (tmp_path / tool).symlink_to(path)
    done = subprocess.run(
        [BUILD], check=False, capture_output=True, text=True, env={"PATH": str(tmp_path)}
    )
    assert done.returncode == 1
    assert "apt-get install buildah" in done.stderr


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_who_is_not_root_builds_as_root_of_a_user_namespace(tmp_path: Path) -> None:
    """Elsewhere `buildah mount` refuses, after minutes."""
    program(tmp_path / "id", "echo 1000")
    program(tmp_path / "buildah", 'printf "%s\\n" "$@" "$PIP_CERT"')
    done = subprocess.run(
        [BUILD, "--tag", "1", "--output", "a b", "enforcer"],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "PIP_CERT": "own.pem"},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    base = "docker.io/library/python:3.13-slim"
    options = ["--base", base, "--tag", "1", "--output", str(tmp_path / "a b")]
    command = ["unshare", "--", str(BUILD), *options, "enforcer"]
    assert done.stdout.splitlines() == [*command, str(tmp_path / "own.pem")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose name has a space."""
    folder = tmp_path / "a b"
    folder.mkdir()
    return folder


def test_settings_of_the_index_reach_pip_as_a_secret_and_others_do_not(folder: Path) -> None:
    """What a shell reads from the secret that buildah gets; it is deleted afterwards."""
    authority, seen = folder / "own.pem", folder / "seen"
    authority.write_text("our certificates")
    program(folder / "id", "echo 0")
    program(
        folder / "buildah",
        f'printf "%s\\n" "$@" >"{seen}"\n'
        f"env -i sh -c '. \"$1\"; env' sh \"$(sed -n s/id=pip.env,src=//p '{seen}')\" "
        f'>"{folder}/environment"\nexit 1',
    )
    index = 'https://me:it\'s "$HOME"@index.example.com/simple'
    settings = {"PIP_INDEX_URL": index, "PIP_RETRIES": "9", "PIP_CERT": authority.name}
    others = {"PIP_FIND_LINKS": "/opt/wheels", "PIP_CONFIG_FILE": "/dev/null"}
    path = f"{folder}:{os.environ['PATH']}"
    done = subprocess.run(
        [BUILD, "--output", "made", "enforcer"],
        env={"PATH": path, "TMPDIR": str(folder)} | settings | others,
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    words = seen.read_text().splitlines()
    assert f"id=ca-certificates,src={authority}" in words
    assert not [one for one in words if one.startswith("id=pip.conf") or index in one]
    assert (folder / "made").is_dir(), "where it was called, not in the project"
    found = (folder / "environment").read_text().splitlines()
    inside = "PIP_CERT=/etc/ssl/certs/ca-certificates.crt"
    assert {f"PIP_INDEX_URL={index}", "PIP_RETRIES=9", inside} <= set(found)
    (secret,) = (one.partition("src=")[2] for one in words if one.startswith("id=pip.env"))
    assert not Path(secret).exists()


@pytest.mark.parametrize("name", ["tools", "installed-operator", "installed-enforcer"])
def test_each_step_that_asks_an_index_reads_the_secrets(name: str) -> None:
    (step,) = (one for one in stage(name).split("\nRUN ")[1:] if "type=secret" in one)
    secrets = ("id=pip.conf,", "id=ca-certificates,", "id=pip.env ", ". /run/secrets/pip.env")
    assert not [one for one in secrets if one not in step]


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_secret_is_read_where_the_image_is_made(program: str) -> None:
    assert "secret" not in stage(program)
