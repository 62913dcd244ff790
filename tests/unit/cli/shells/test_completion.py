"""`numapin completion`: the words that fit, and the shells that ask for them."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from numapin_cli.asked.target import WORKLOADS
from numapin_cli.main import SUBCOMMANDS, main
from numapin_client.resources import CPU_POLICIES, NAMESPACES, NODES, PODS, WORKLOAD_RESOURCES
from support.fakes.apiserver import FakeApiServer
from support.fakes.worlds.asked_cluster import kubeconfig

BIN = Path(sys.executable).parent
Capture = pytest.CaptureFixture[str]
EXPLAINED = ("pod", "node", "policy", *WORKLOADS)
NO_FILES, NO_SPACE, FILES = ":4", ":6", ":0"


def offered(capsys: Capture, *words: str) -> tuple[list[str], str]:
    """The words that are offered, and the directive."""
    assert main(["completion", "candidates", "--", *words]) == 0
    *lines, directive = capsys.readouterr().out.splitlines()
    return [line.partition("\t")[0] for line in lines], directive


@pytest.fixture
def no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))


@pytest.mark.usefixtures("no_cluster")
@pytest.mark.parametrize(
    ("words", "expected", "directive"),
    [
        ([""], [one.name for one in SUBCOMMANDS], NO_FILES),
        ([], [one.name for one in SUBCOMMANDS], NO_FILES),
        (["ex"], ["explain"], NO_FILES),
        (["nothing"], [], NO_FILES),
        (["get", "-o", ""], ["text", "wide", "json", "yaml", "jsonpath=", "name"], NO_FILES),
        (["get", "--output", "=", "jsono"], [], NO_FILES),
        (["get", "--output", "=", "j"], ["json", "jsonpath="], NO_FILES),
        (["get", "--output=j"], ["--output=json", "--output=jsonpath="], NO_FILES),
        (["get", "--output=json", "--w"], ["--watch"], NO_FILES),
        (["get", "--sort", "f"], ["free"], NO_FILES),
        (["get", "--kubeconfig", ""], [], FILES),
        (["plan", "-f", ""], [], FILES),
        (["report", "-o", ""], [], FILES),
        (["simulate", ""], [], FILES),
        (["topology", "--ro"], ["--root"], NO_FILES),
        (["completion", ""], ["bash", "zsh", "fish"], NO_FILES),
        (["explain", ""], [f"{kind}/" for kind in EXPLAINED], NO_SPACE),
        (["explain", "po"], ["pod/", "policy/"], NO_SPACE),
        (["check", ""], ["pod/", "node/"], NO_SPACE),
        (["check", "po"], ["pod/"], NO_SPACE),
        (["get", ""], [], NO_FILES),
        (["get", "-x", "--unknown", ""], [], NO_FILES),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else one,
)
def test_words_that_fit_without_a_cluster(
    capsys: Capture, words: list[str], expected: list[str], directive: str
) -> None:
    assert offered(capsys, *words) == (expected, directive)


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as started:
        for name in ("worker-1", "worker-2", "master"):
            started.put(NODES, {"metadata": {"name": name}})
        for name, namespace in (("web-0", "default"), ("db-0", "shop"), ("db-1", "shop")):
            started.put(PODS, {"metadata": {"name": name, "namespace": namespace}})
        started.put(CPU_POLICIES, {"metadata": {"name": "fast"}})
        web = {"metadata": {"name": "web", "namespace": "default"}}
        started.put(WORKLOAD_RESOURCES["Deployment"], web)
        started.put(NAMESPACES, {"metadata": {"name": "shop"}})
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(started.url, tmp_path)))
        yield started


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["get", "wor"], ["worker-1", "worker-2"]),
        (["get", "worker-1", ""], ["master", "worker-1", "worker-2"]),
        (["get", "--policy", ""], ["fast"]),
        (["report", "--node", "m"], ["master"]),
        (["report", "--node=m"], ["--node=master"]),
        (["explain", "-n", ""], ["shop"]),
        (["explain", "web"], ["web-0"]),
        (["explain", "-n", "shop", "pod", ""], ["db-0", "db-1"]),
        (["explain", "-n", "shop", "pod/d"], ["pod/db-0", "pod/db-1"]),
        (["explain", "policy/"], ["policy/fast"]),
        (["explain", "node", "work"], ["worker-1", "worker-2"]),
        (["explain", "f"], ["fast"]),
        (["explain", "deploy/"], ["deploy/web"]),
        (["explain", "sts", ""], []),
        (["check", "web"], ["web-0"]),
        (["check", "policy/"], []),
    ],
    ids=str,
)
async def test_names_of_the_cluster(
    server: FakeApiServer, capsys: Capture, words: list[str], expected: list[str]
) -> None:
    found = await asyncio.to_thread(offered, capsys, *words)
    assert found == (expected, NO_FILES)
    accepted = {one.headers["Accept"] for one in server.requests}
    assert all("PartialObjectMetadataList" in one for one in accepted)


async def test_what_the_cluster_refuses_offers_nothing(
    server: FakeApiServer, capsys: Capture
) -> None:
    server.forbidden.add("list nodes")
    assert await asyncio.to_thread(offered, capsys, "get", "") == ([], NO_FILES)
    assert await asyncio.to_thread(offered, capsys, "explain", "f") == (["fast"], NO_FILES)


def test_a_script_is_printed_for_each_shell(capsys: Capture) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert main(["completion", shell]) == 0
        assert "completion candidates" in capsys.readouterr().out
    assert main(["completion", "bash", "more"]) == 2
    assert "give only the name of the shell" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["completion", "ksh"])
    error = capsys.readouterr().err
    assert "ksh" in error
    assert all(shell in error for shell in ("bash", "zsh", "fish"))
    assert "candidates" not in error


def environment(folder: Path) -> dict[str, str]:
    """No cluster, and numapin of this checkout."""
    path = f"{BIN}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(folder), "KUBECONFIG": str(folder / "none"), "TERM": "dumb"}


def need(shell: str) -> None:
    """Skip a test whose shell is missing; in CI, where it must not be, go on and fail."""
    if shutil.which(shell) is None and "CI" not in os.environ:
        pytest.skip(f"needs {shell}; lab/system-packages installs it")


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        command, env=environment(folder), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def answers(output: str) -> list[list[str]]:
    """The lines of each answer of a shell; a line `END` ends each."""
    *found, rest = output.split("END\n")
    assert rest == ""
    return [one.splitlines() for one in found]


BASH = """\
cd {folder}
source <(numapin completion bash)
compopt() {{ echo "compopt $*"; }}
ask() {{
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _numapin
    printf '%s\\n' "${{COMPREPLY[@]}}" END
}}
ask numapin ex
ask numapin get --output = j
ask numapin explain po
ask numapin plan -f fi
"""


def test_bash_offers_the_words(tmp_path: Path) -> None:
    (tmp_path / "file.yaml").touch()
    assert answers(run(tmp_path, "bash", "-c", BASH.format(folder=tmp_path))) == [
        ["explain"],
        ["json", "jsonpath="],
        ["compopt -o nospace", "pod/", "policy/"],
        ["compopt -o filenames", "file.yaml"],
    ]


FISH = """\
cd {folder}
numapin completion fish | source
for line in 'numapin ex' 'numapin get -o j' 'numapin explain po' 'numapin plan -f fi'
    complete -C $line
    echo END
end
"""


def test_fish_offers_the_words(tmp_path: Path) -> None:
    need("fish")
    (tmp_path / "file.yaml").touch()
    found = answers(run(tmp_path, "fish", "--no-config", "-c", FISH.format(folder=tmp_path)))
    assert [[line.partition("\t")[0] for line in one] for one in found] == [
        ["explain"],
        ["json", "jsonpath="],
        ["pod/", "policy/"],
        ["file.yaml"],
    ]


ZSH = """\
autoload -Uz compinit && compinit -u -d {folder}/dump
_describe() {{ print -l -- "${{(@P)4}}" "options: ${{@:5}}"; }}
_files() {{ print files; }}
source <(numapin completion zsh)
ask() {{
    words=("$@"); CURRENT=${{#words}}
    _numapin
    print END
}}
ask numapin ex
ask numapin get -o j
ask numapin explain po
ask numapin plan -f ''
print "$_comps[numapin]"
print END
"""


def test_zsh_offers_the_words(tmp_path: Path) -> None:
    need("zsh")
    found = answers(run(tmp_path, "zsh", "-f", "-c", ZSH.format(folder=tmp_path)))
    explain, output, kinds, files, registered = found
    assert explain == [
        "explain:say why a pod has or lacks CPUs of its own, and what would help",
        "options: ",
    ]
    assert output == ["json", "jsonpath=", "options: "]
    assert [one.partition(":")[0] for one in kinds][:2] == ["pod/", "policy/"]
    assert "options: -S" in " ".join(kinds)
    assert files == ["files"]
    assert registered == ["_numapin"]


def test_kubectl_is_answered_by_its_own_program(tmp_path: Path) -> None:
    answer = run(tmp_path, "kubectl_complete-numapin", "get", "-o", "ya")
    assert answer == "yaml\n:4\n"
