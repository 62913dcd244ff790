"""Mounts below the folders of a lab."""

from pathlib import Path

import pytest

from numapin_lab.node.mounts import below, file_system

MOUNTED = """\
/dev/vda / ext4 rw 0 0
overlay /home overlay rw 0 0
tmpfs /lab/a tmpfs rw 0 0
overlay /lab/a/rootfs overlay rw 0 0
nsfs /run/lab/mnt nsfs rw 0 0
tmpfs /lab/with\\040blank tmpfs rw 0 0
tmpfs /laboratory tmpfs rw 0 0
"""


def test_mounts_below_come_in_the_order_of_unmounting() -> None:
    found = below(MOUNTED, (Path("/lab"), Path("/run/lab")))
    assert found == ["/lab/with blank", "/run/lab/mnt", "/lab/a/rootfs", "/lab/a"]


@pytest.mark.parametrize(
    ("folder", "expected"),
    [("/home/me/.lab", "overlay"), ("/homework", "ext4"), ("/lab/a/b", "tmpfs")],
)
def test_the_file_system_of_a_folder(folder: str, expected: str) -> None:
    assert file_system(MOUNTED, Path(folder)) == expected
