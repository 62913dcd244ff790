"""Which busybox the image can be made of."""

from pathlib import Path

import pytest

from numapin_lab.errors import MissingError
from numapin_lab.node.image import find_busybox, is_static


def elf(*kinds: int) -> bytes:
    """A 64-bit ELF header with one program header of each kind."""
    header = bytearray(64)
    header[:5] = b"\x7fELF\x02"
    header[32:40] = (64).to_bytes(8, "little")
    header[54:56] = (56).to_bytes(2, "little")
    header[56:58] = len(kinds).to_bytes(2, "little")
    return bytes(header) + b"".join(kind.to_bytes(4, "little") + bytes(52) for kind in kinds)


@pytest.mark.parametrize(
    ("program", "static"),
    [
        pytest.param(elf(1, 2), True, id="static"),
        pytest.param(elf(6, 3, 1), False, id="asks-for-an-interpreter"),
        pytest.param(b"#!/bin/sh\n", False, id="script"),
        pytest.param(b"", False, id="empty"),
    ],
)
def test_only_a_static_busybox_will_do(program: bytes, static: bool, tmp_path: Path) -> None:
    assert is_static(program) is static
    path = tmp_path / "busybox"
    path.write_bytes(program)
    path.chmod(0o755)
    if static:
        assert find_busybox(str(tmp_path)) == path
    else:
        with pytest.raises(MissingError, match=r"apt-get install .* busybox-static"):
            find_busybox(str(tmp_path))
