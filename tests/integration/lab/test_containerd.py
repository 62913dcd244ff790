"""The private containerd as the lab starts it."""

from numapin_lab.node.containerd import Runtime
from numapin_lab.processes.daemons import kill


def test_the_image_is_there_under_every_name(containerd: Runtime) -> None:
    names = containerd.ctr("images", "list", "--quiet").split()
    assert {containerd.image, "docker.io/library/busybox:stable"} <= set(names)


def test_it_is_the_version_that_go_mod_pins_or_newer(containerd: Runtime) -> None:
    assert "\n  Version:  2." in containerd.ctr("version")


def test_start_brings_it_back_when_killed(containerd: Runtime) -> None:
    pid = containerd.daemon.pid()
    assert pid is not None
    kill(pid)
    containerd.start()
    assert containerd.daemon.pid() not in {None, pid}
    assert containerd.image in containerd.ctr("images", "list", "--quiet")
