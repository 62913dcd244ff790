"""`numapin` as a user runs it, against an API server in memory with a cluster on it."""

import asyncio
import io
import json
import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from numapin_cli.main import main
from numapin_client.resources import (
    CPU_POLICIES,
    NAMESPACES,
    NODE_ASSIGNMENTS,
    NODE_REPORTS,
    NODE_TOPOLOGIES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
)
from support.fakes.apiserver import FakeApiServer
from support.values.operator import Body

RESOURCES = {
    one.kind: one
    for one in (
        *(CPU_POLICIES, NODE_ASSIGNMENTS, NODE_REPORTS, NODE_TOPOLOGIES),
        *(NAMESPACES, NODES, PODS, RESOURCE_CLAIMS),
    )
}


def fill(server: FakeApiServer, dump: Body) -> None:
    """Put every object of a list there."""
    for body in dump["items"]:
        kept = server.put(RESOURCES[body["kind"]], body)
        kept["metadata"]["uid"] = body["metadata"].get("uid") or kept["metadata"]["uid"]


def kubeconfig(server: str, folder: Path, namespace: str = "") -> Path:
    """How to reach a server without a login."""
    context = {"cluster": "it", "user": "", "namespace": namespace}
    content = {
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": server}}],
        "contexts": [{"name": "it", "context": context}],
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(content))
    return file


async def asked(server: FakeApiServer, folder: Path, *arguments: str) -> int:
    """Run a command against the server; returns its exit status."""
    flags = ["--kubeconfig", str(kubeconfig(server.url, folder))]
    return await asyncio.to_thread(main, [*arguments, *flags])


Capture = pytest.CaptureFixture[str]


def explained(folder: Path, capsys: Capture, dump: str, *words: str) -> tuple[int, Body]:
    """The exit status of `numapin explain` and the only explanation, by a dump."""
    file = folder / "now.json"
    file.write_text(dump)
    status = main(["explain", *words, "--cluster", str(file), "-o", "json"])
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    return status, found


def drawn(folder: Path, capsys: Capture, dump: str, *words: str) -> str:
    """What `numapin explain` draws, by a dump."""
    (folder / "now.json").write_text(dump)
    main(["explain", *words, "--cluster", str(folder / "now.json")])
    return capsys.readouterr().out


async def reported(
    server: FakeApiServer, folder: Path, *flags: str, status: int = 3
) -> dict[str, str]:
    """The files of a report; `folder` has a machine that is no node by default."""
    file = folder / "report.tar.gz"
    machine = str(folder / "machine")
    arguments = ("report", "-o", str(file), "--root", machine, *flags)
    assert await asked(server, folder, *arguments) == status
    return contents(file.read_bytes())


def contents(archive: bytes) -> dict[str, str]:
    """The files of a report, by path below its folder."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        for member in opened:
            stream = opened.extractfile(member)
            assert stream is not None
            found[member.name.partition("/")[2]] = stream.read().decode()
    return found


class Bare(NamedTuple):
    """What a command answered before the CRDs were installed."""

    status: int
    error: str


async def ask(kubeconfig: Path, *words: str) -> int:
    """Run a command against the server of a kubeconfig; returns its exit status."""
    return await asyncio.to_thread(main, [*words, "--kubeconfig", str(kubeconfig)])
