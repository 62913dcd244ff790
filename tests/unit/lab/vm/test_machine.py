"""The virtual machine's parts, without booting it."""

import lzma
import subprocess
from pathlib import Path

import pytest

from numapin_lab.errors import LabError, MissingError
from numapin_lab.node.containerd import SEARCH_PATH
from numapin_lab.node.image import find_busybox
from numapin_lab.vm import kernel
from numapin_lab.vm.initramfs import command_script, cpio
from numapin_lab.vm.kernel import module_files, provide_kernel, unpack
from numapin_lab.vm.machine import Machine

DEPENDENCIES = """\
kernel/fs/9p/9p.ko: kernel/net/9p/9pnet.ko kernel/fs/fscache/fscache.ko kernel/fs/netfs/netfs.ko
kernel/net/9p/9pnet.ko:
kernel/net/9p/9pnet_virtio.ko.xz: kernel/net/9p/9pnet.ko kernel/drivers/virtio/virtio-ring.ko
"""


def test_modules_come_after_what_they_depend_on_and_once() -> None:
    assert module_files(DEPENDENCIES, ["9p", "9pnet-virtio", "overlay"]) == [
        "kernel/fs/netfs/netfs.ko",
        "kernel/fs/fscache/fscache.ko",
        "kernel/net/9p/9pnet.ko",
        "kernel/fs/9p/9p.ko",
        "kernel/drivers/virtio/virtio-ring.ko",
        "kernel/net/9p/9pnet_virtio.ko.xz",
    ]


def test_the_elf_kernel_is_found_in_the_image() -> None:
    elf = b"\x7fELF" + bytes(1000)
    image = b"MZ" + bytes(77) + b"\xfd7zXZ\x00no" + lzma.compress(b"data") + lzma.compress(elf)
    assert unpack(image + b"trailer") == elf


def test_an_image_that_is_compressed_in_another_way_is_booted_as_it_is() -> None:
    image = bytes(0x202) + b"HdrS" + lzma.compress(b"data")
    assert unpack(image) == image


def test_an_image_without_a_kernel_is_refused() -> None:
    with pytest.raises(LabError, match="no ELF kernel"):
        unpack(lzma.compress(b"data"))


def test_a_kernel_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    chosen = {"NUMAPIN_LAB_CACHE": str(tmp_path), "NUMAPIN_LAB_KERNEL": "6.2"}
    with pytest.raises(LabError, match=r"NUMAPIN_LAB_KERNEL is '6\.2'; leave it empty"):
        provide_kernel(chosen)


def test_a_missing_program_is_named_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "SEARCH_PATH", str(tmp_path))
    with pytest.raises(MissingError, match=r"depmod is missing(.|\n)*lab/system-packages"):
        kernel._run(["depmod", "-b", "."], tmp_path)


def test_the_archive_is_one_that_cpio_reads(tmp_path: Path) -> None:
    archive = cpio(["bin", "etc"], {"bin/tool": (b"12345", 0o755), "etc/list": (b"", 0o644)})
    busybox = find_busybox(SEARCH_PATH)
    subprocess.run([busybox, "cpio", "-i"], input=archive, cwd=tmp_path, check=True)
    assert (tmp_path / "bin/tool").read_bytes() == b"12345"
    assert (tmp_path / "bin/tool").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "etc/list").read_bytes() == b""


def test_the_command_is_quoted_for_the_guests_shell() -> None:
    script = command_script(["echo", "a b", "$HOME"], Path("/my work"), {"NAME": "it's"})
    assert "export NAME='it'\"'\"'s'\n" in script
    assert "cd '/my work'\n" in script
    assert "echo 'a b' '$HOME' </dev/null" in script


def test_cpus_and_memory_are_divided_among_the_numa_nodes() -> None:
    arguments = " ".join(Machine(sockets=2, cores=3, threads=2, numa_nodes=3).arguments())
    assert "-smp 12,sockets=2,cores=3,threads=2" in arguments
    for node, cpus in enumerate(("0-3", "4-7", "8-11")):
        assert f"memory-backend-ram,id=m{node},size=1024M" in arguments
        assert f"node,nodeid={node},cpus={cpus},memdev=m{node}" in arguments
    assert arguments.count("dist,") == 3


@pytest.mark.parametrize("machine", [Machine(numa_nodes=3), Machine(memory_mib=1001)], ids=str)
def test_an_uneven_machine_is_refused(machine: Machine) -> None:
    with pytest.raises(LabError, match="cannot be divided evenly"):
        machine.arguments()
