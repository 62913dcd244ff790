"""Which objects of a source are of interest, so that the others are never decoded."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field as made
from typing import Final

from numapin_client.resources import Json

_OBJECTS: Final = (b'{"type":"ADDED"', b'{"type":"MODIFIED"', b'{"type":"DELETED"')
"""How the lines of a watch begin that contain an object; all others must be read."""


@dataclass(frozen=True, slots=True)
class Sieve:
    """Chooses objects by the name in one field.

    A line of a watch is dropped before it is parsed if *every* field of that name, anywhere in it,
    names something else: the API server writes no spaces, and within a text a quote is escaped, so
    that `"nodeName":"` is always the beginning of a field. Somebody may add such a field, as the
    key of a label, and so have a line parsed that could have been dropped, but no line dropped.

    Attributes:
        field: the last part of the path, such as `nodeName`.
        read: the value in an object; empty if it has none.
        wants: whether a value is of interest.
    """

    field: str
    read: Callable[[Json], str]
    wants: Callable[[str], bool]
    _values: re.Pattern[bytes] = made(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        pattern = re.compile(b'"' + self.field.encode() + b'":"([^"\\\\]*)"')
        object.__setattr__(self, "_values", pattern)

    def may_want(self, line: bytes) -> bool:
        """Whether a line of a watch must be parsed."""
        if not line.startswith(_OBJECTS):
            return True
        found = self._values.findall(line)
        return not found or any(self.wants(one.decode()) for one in set(found))

    def takes(self, body: Json) -> bool:
        """Whether an object is of interest."""
        return self.wants(self.read(body))


def name_of(body: Json) -> str:
    """The name of an object."""
    return str(body["metadata"]["name"])
