"""Several container runtimes on one machine do not affect each other."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from numapin_lab.node.containerd import Runtime
from numapin_lab.node.played_kubelet import Kubelet, Pod
from support.real.containerd import private_runtime
from support.real.kernel_cgroups import cpus_of, pids_of
from support.real.sampled_cpus import sampled

MACHINES = Path("/run/containerd")
"""The default state folder of containerd, used by the machine's own one."""


@pytest.fixture
async def neighbour(root: None, tmp_path: Path) -> AsyncIterator[Kubelet]:
    """A kubelet with its own containerd."""
    (tmp_path / "neighbour").mkdir()
    with private_runtime(tmp_path / "neighbour") as runtime:
        made = Kubelet(runtime, runtime.cgroup.path, tmp_path / "neighbour")
        await made.start()
        yield made
        made.channel.close()


@pytest.fixture
def machines_own(root: None) -> Iterator[None]:
    """A file in the machine's containerd state folder; it must be unchanged after the test."""
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
    kubelet: Kubelet, exclusive: tuple[Pod, str], neighbour: Kubelet, machines_own: None
) -> None:
    pod, cgroup = exclusive
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


def test_a_private_runtime_opens_no_file_of_the_machines_runtime(containerd: Runtime) -> None:
    pid = containerd.daemon.pid()
    opened = []
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            opened.append(str(file.readlink()))
    assert any(name.startswith(str(containerd.run)) for name in opened)
    assert [name for name in opened if name.startswith(str(MACHINES))] == []
