"""cgroup v1 on two NUMA nodes: memory moves, and a cpuset that has CPUs exclusively.

Not collected on the host: test_in_virtual_machine.py runs this, in a machine of its own, since the
cpuset controller leaves cgroup v2 here.
"""

import re
import subprocess
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment
from numapin_enforcer.cgroups.apply import apply
from numapin_enforcer.cgroups.cgroupfs import Cgroupfs
from numapin_enforcer.cgroups.errors import CgroupRefusedError
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.writes.ordered import plan
from support.real.cgroups import online_cpus

ALL, BOTH = online_cpus(), MemSet((0, 1))
POD, OWN = "kubepods/podx", f"kubepods/podx/{'a' * 64}"
HELD_BYTES = 4194304


@pytest.fixture(scope="module")
def mount(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cpuset controller as v1; only a machine whose v2 cgroups do not use it can have that.

    Nothing of it is removed: the machine ends with these tests.
    """
    Path("/sys/fs/cgroup/cgroup.subtree_control").write_text("-cpuset")
    folder = tmp_path_factory.mktemp("cpuset")
    subprocess.run(["mount", "-t", "cgroup", "-o", "cpuset", "cpuset", str(folder)], check=True)
    return folder


def make(mount: Path, path: str, cpus: CpuSet, mems: MemSet = BOTH) -> Path:
    folder = mount / path
    folder.mkdir()
    (folder / "cpuset.cpus").write_text(str(cpus))
    (folder / "cpuset.mems").write_text(str(mems))
    return folder


def kubepods(mount: Path, name: str) -> Cgroupfs:
    make(mount, name, CpuSet((0, 1)))
    return Cgroupfs(Mounts(Version.V1, mount, None), name)


def held_on(pid: int, node: int) -> int:
    text = Path(f"/proc/{pid}/numa_maps").read_text()
    anonymous = [line for line in text.splitlines() if "anon=" in line]
    return 4096 * sum(int(one) for one in re.findall(rf" N{node}=(\d+)", "\n".join(anonymous)))


def test_memory_is_moved_and_memory_migrate_is_0_again(mount: Path) -> None:
    files = kubepods(mount, "kubepods")
    make(mount, POD, CpuSet((0, 1)))
    own = make(mount, OWN, CpuSet((1,)), MemSet((1,)))
    script = f"read _; held=$(yes | head -c {HELD_BYTES}); echo held; sleep 1000; true"
    with subprocess.Popen(
        ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        (own / "cgroup.procs").write_text(str(process.pid))
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        assert process.stdout.readline() == "held\n"
        assert held_on(process.pid, 1) >= HELD_BYTES
        cpus, mems = CpuSet((1,)), MemSet((0,))
        container = ContainerAssignment("uid", "default", "p", "main", cpus, mems, exclusive=True)
        wanted = {
            "kubepods": Desired(CpuSet((0, 1)), BOTH),
            POD: Desired(CpuSet((0, 1)), BOTH),
            OWN: Desired(cpus, mems, container, exclusive=True),
        }
        outcome = apply(plan(files.read(), wanted).moves, files)
        assert outcome.failed == ()
        assert held_on(process.pid, 0) >= HELD_BYTES
        assert (own / "cpuset.memory_migrate").read_text() == "0\n"
        process.kill()


def test_a_cpuset_that_keeps_its_cpus_from_kubepods_is_named(mount: Path) -> None:
    """As `cset shield --cpu` makes it."""
    files = kubepods(mount, "beside")
    shield = make(mount, "user", ALL - CpuSet((0, 1)))
    (shield / "cpuset.cpu_exclusive").write_text("1")
    with pytest.raises(CgroupRefusedError, match=r"/user has CPUs 2-3 exclusively .*cset shield"):
        files.write(Write("beside", ALL, Step.WIDEN))
    shield.rmdir()
    files.write(Write("beside", ALL, Step.WIDEN))
    assert files.read_effective_cpus("beside") == ALL
