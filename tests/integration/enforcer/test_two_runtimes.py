"""Several container runtimes on one machine: what is done to one is nothing to the other."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from numapin_lab.node.containerd import Runtime
from support.real.containerd import private_runtime
from support.real.played_kubelet import Kubelet, Pod, cpus_of, pids_of
from support.real.sampled_cpus import sampled

MACHINES = Path("/run/containerd")
"""The folder of the machine's own containerd, and of whoever is told no other."""


@pytest.fixture
async def neighbour(root: None, tmp_path: Path) -> AsyncIterator[Kubelet]:
    """A kubelet on a containerd of its own."""
    (tmp_path / "neighbour").mkdir()
    with private_runtime(tmp_path / "neighbour") as runtime:
        made = Kubelet(runtime, runtime.cgroup.path, tmp_path / "neighbour")
        await made.start()
        yield made
        made.channel.close()


@pytest.fixture
def machines_own(root: None) -> Iterator[None]:
    """Somebody keeps a file where the machine's containerd has its state, and has it afterwards."""
    there = MACHINES.is_dir()
    file = MACHINES / f"numapin-test-{secrets.token_hex(4)}"
    MACHINES.mkdir(exist_ok=True)
    file.write_text("mine")
    yield
    assert file.read_text() == "mine"
    file.unlink()
    if not there:
        MACHINES.rmdir()


async def test_stopping_a_runtime_leaves_the_other_alone(
    kubelet: Kubelet, owner: tuple[Pod, str], neighbour: Kubelet, machines_own: None
) -> None:
    pod, cgroup = owner
    await kubelet.until_remembered(cgroup.rpartition("/")[2], "1")
    before = (kubelet.runtime.daemon.pid(), pids_of(cgroup))
    theirs = await neighbour.run_pod("theirs")
    their_cgroup = f"{theirs.cgroup}/{await neighbour.run(theirs, 'main')}"
    assert pids_of(their_cgroup)
    assert cpus_of(their_cgroup) == "0-1"
    with sampled(cgroup) as seen:
        await asyncio.to_thread(neighbour.runtime.stop)
        late = await kubelet.run(pod, "late")
    assert (seen, cpus_of(f"{pod.cgroup}/{late}")) == ({"1"}, "0")
    assert (kubelet.runtime.daemon.pid(), pids_of(cgroup)) == before
    assert neighbour.runtime.daemon.pid() is None
    with pytest.raises(FileNotFoundError):
        cpus_of(neighbour.runtime.cgroup.path)


def test_a_runtime_keeps_nothing_where_the_machines_has_its_state(containerd: Runtime) -> None:
    pid = containerd.daemon.pid()
    opened = []
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            opened.append(str(file.readlink()))
    assert any(name.startswith(str(containerd.run)) for name in opened)
    assert [name for name in opened if name.startswith(str(MACHINES))] == []
