"""What the operator's image contains, and what the process does not load."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "operator" / "Dockerfile").read_text()


def test_every_source_folder_of_the_wheel_is_copied() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text()
    wheel = re.search(r"targets\.wheel\]\npackages = \[(.*?)\]", pyproject, re.DOTALL)
    assert wheel is not None
    folders = {path.partition("/")[0] for path in re.findall(r'"(.*?)"', wheel[1])}
    copied = set(re.findall(r"^COPY (\w+) \w+$", DOCKERFILE, re.MULTILINE))
    assert copied == folders


def test_it_runs_as_the_user_of_the_manifest() -> None:
    manifest = (ROOT / "manifests" / "base" / "operator.yaml").read_text()
    user = re.search(r"runAsUser: (\d+)", manifest)
    assert user is not None
    assert f"USER {user[1]}:{user[1]}\n" in DOCKERFILE


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
