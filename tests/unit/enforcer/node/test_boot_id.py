from pathlib import Path

from numapin_enforcer.node.boot_id import read_boot_id


def test_the_boot_id_is_the_kernels(tmp_path: Path) -> None:
    assert read_boot_id(tmp_path) is None
    folder = tmp_path / "sys/kernel/random"
    folder.mkdir(parents=True)
    for text, boot_id in (("", None), ("7d0a-41\n", "7d0a-41"), ("x" * 99, "x" * 64)):
        (folder / "boot_id").write_text(text)
        assert read_boot_id(tmp_path) == boot_id
