"""Cgroups that a pod makes in its own cgroup concern that pod alone."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from numapin_enforcer.cgroups.nested.nesting import MOST_DEPTH, MOST_NESTED
from numapin_lab.node.played_kubelet import Kubelet, Pod
from support.real.enforcer_node import Node, assigned, spec
from support.real.kernel_cgroups import CPUSET, VERSION, cpus_of, write_cpus
from support.real.waiting import eventually

DEEP = 1100
"""More than Python recurses, and with a name of four letters more than a path may have."""

AS_DEPLOYED = ("setpriv", "--bounding-set=-all,+sys_nice,+dac_override", "--inh-caps=-all")
WITHOUT_OVERRIDE = ("setpriv", "--bounding-set=-all,+sys_nice", "--inh-caps=-all")
FOREIGN = 1000


def without_permissions(folder: Path) -> None:
    """As `umask 777; mkdir x`."""
    (folder / "x").mkdir()
    (folder / "x").chmod(0)


def of_another_user(folder: Path) -> None:
    """As rootless podman or a user's systemd: a nested cgroup of its own."""
    inside = folder / "foreign"
    inside.mkdir()
    for name in ("cpuset.mems", "cpuset.cpus") if VERSION == 1 else ():
        (inside / name).write_text((folder / name).read_text())
    for one in (*inside.iterdir(), inside):
        os.chown(one, FOREIGN, FOREIGN)


def deep(folder: Path, name: str = "deep", count: int = DEEP) -> None:
    inside = os.open(folder, os.O_RDONLY)
    for _ in range(count):
        os.mkdir(name, dir_fd=inside)
        above, inside = inside, os.open(name, os.O_RDONLY, dir_fd=inside)
        os.close(above)
    os.close(inside)


def with_long_names(folder: Path) -> None:
    deep(folder, "l" * 240, 18)


def not_unicode(folder: Path) -> None:
    (folder / os.fsdecode(b"\xff\xfe")).mkdir()


def many(folder: Path) -> None:
    for number in range(2 * MOST_NESTED):
        (folder / f"many{number}").mkdir()


MADE: dict[str, Callable[[Path], None]] = {
    "without permissions": without_permissions,
    "of another user": of_another_user,
    "deep": deep,
    "with long names": with_long_names,
    "not Unicode": not_unicode,
    "many": many,
}


def remove_inside(folder: Path) -> None:
    """Remove all cgroups inside one, however deep."""
    stack = [(os.open(folder, os.O_RDONLY), "")]
    while stack:
        inside, name = stack[-1]
        entries = [one.name for one in os.scandir(inside) if one.is_dir(follow_symlinks=False)]
        if entries:
            child = entries[0]
            stack.append((os.open(child, os.O_RDONLY, dir_fd=inside), child))
            continue
        os.close(inside)
        stack.pop()
        if stack:
            os.rmdir(name, dir_fd=stack[-1][0])


@pytest.fixture
async def tenant(kubelet: Kubelet, exclusive: tuple[Pod, str]) -> str:
    """The cgroup of a besteffort container that may make cgroups."""
    assert cpus_of(exclusive[1]) == "1"
    pod = await kubelet.run_pod("tenant", "besteffort")
    return f"{pod.cgroup}/{await kubelet.run(pod, 'main')}"


@pytest.fixture
def folder(tenant: str) -> Iterator[Path]:
    yield CPUSET / tenant
    remove_inside(CPUSET / tenant)


async def _restart(node: Node, within: tuple[str, ...]) -> None:
    await node.stop(signal.SIGKILL)
    await node.start(within=within)
    await eventually(node.in_force)


@pytest.mark.parametrize("within", [AS_DEPLOYED, WITHOUT_OVERRIDE], ids=["deployed", "bare"])
async def test_no_nested_cgroup_ends_the_enforcer_or_stops_it(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str], folder: Path, within: tuple[str, ...]
) -> None:
    await _restart(node, within)
    standby = await node.stand_by()
    for name, make in MADE.items():
        make(folder)
        pod = await kubelet.run_pod(f"new-{name.replace(' ', '-').lower()}")
        await eventually(lambda: cpus_of(pod.cgroup) == "0", f"{name}: a pod to be fenced")  # noqa: B023
        assert not node.ended(), f"{name}: {node.log}"
    await _restart(node, within)
    assert "Traceback" not in node.log
    write_cpus(exclusive[0].cgroup, "0-1")
    await node.stop(signal.SIGKILL)
    pod = await kubelet.run_pod("last")
    await eventually(lambda: cpus_of(pod.cgroup) == "0", "the standby to fence a pod")
    assert standby.poll() is None
    assert "Traceback" not in node.standby_log
    assert cpus_of(exclusive[1]) == "1"


async def test_the_status_names_the_pod_whose_cgroups_are_not_read(
    node: Node, folder: Path, tenant: str
) -> None:
    many(folder)
    pod_uid = Path(tenant).parent.name.removeprefix("pod")
    await eventually(lambda: pod_uid in node.condition("Ready")[2], "the condition to say so")
    status, _, message = node.condition("Ready")
    assert status == "True"
    assert f"more than {MOST_NESTED} cgroups inside the containers of one pod" in message
    deep(folder, "x", MOST_DEPTH)
    remove_inside(folder)
    await eventually(lambda: pod_uid not in node.condition("Ready")[2], "the note to go")


@pytest.mark.parametrize("within", [AS_DEPLOYED, WITHOUT_OVERRIDE], ids=["deployed", "bare"])
async def test_a_cgroup_of_another_user_keeps_no_other_pod_on_exclusive_cpus(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str], folder: Path, within: tuple[str, ...]
) -> None:
    await _restart(node, within)
    await node.applied(spec(shared="0-1"))
    of_another_user(folder)
    other = await kubelet.run_pod("other", "burstable")
    bystander = f"{other.cgroup}/{await kubelet.run(other, 'main')}"
    assert cpus_of(bystander) == "0-1"
    node.assign(spec(assigned(exclusive[0].uid, "main", "1"), shared="0"))
    await eventually(lambda: cpus_of(bystander) == "0", "the bystander to be moved")
    if within == AS_DEPLOYED:
        await eventually(node.reports_exclusive)
        assert cpus_of(str(folder.relative_to(CPUSET) / "foreign")) == "0"
        return
    await eventually(lambda: node.condition("Ready")[1] == "CgroupWriteFailed")
    assert "foreign/cpuset.cpus: permission denied (EACCES)" in node.condition("Ready")[2]
    assert not any(one["exclusive"] for one in node.status["containers"])
