"""The bytes of inotify events (inotify(7)). Does no I/O."""

import struct
from collections.abc import Iterator
from typing import Final

_HEADER: Final = struct.Struct("iIII")


class EventMask:
    """Event bits. Source: linux/inotify.h."""

    MODIFY: Final = 0x2
    MOVED_FROM: Final = 0x40
    MOVED_TO: Final = 0x80
    CREATE: Final = 0x100
    DELETE: Final = 0x200
    Q_OVERFLOW: Final = 0x4000
    ONLYDIR: Final = 0x1000000
    ISDIR: Final = 0x40000000


def parse_events(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The watch, the bits and the name of each event of one read."""
    offset, end = 0, len(data)
    while offset < end:
        watch, mask, _cookie, length = _HEADER.unpack_from(data, offset)
        offset += _HEADER.size
        yield watch, mask, data[offset : offset + length].rstrip(b"\0")
        offset += length
