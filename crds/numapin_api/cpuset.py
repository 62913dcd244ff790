"""CpuSet and MemSet: what goes in `cpuset.cpus` and `cpuset.mems`, and the kernel's list format."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, Self, TypeVar

MAX_ID: Final = 8191
"""The highest id in a list. Source: the kernel's NR_CPUS is at most 8192 on any architecture."""

MAX_NUMA_NODE: Final = 1023
"""The highest id of a NUMA node. Source: the kernel's NODES_SHIFT is at most 10."""

LIST_LENGTH: Final = 4096
"""Characters of a list in an object of the API."""

LIST_PATTERN: Final = r"^([0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*)?$"
"""The syntax of a kernel list; a regular expression cannot check that ranges ascend."""

SHORT_LIST: Final = 32
"""Characters of a list whose parsed form is remembered."""

_LIST = re.compile(LIST_PATTERN, re.ASCII)


class ListFormatError(ValueError):
    """A text is not a kernel list such as `0-3,8`."""

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(f"{text!r:.60} is not a list of ids: {problem}; write it like 0-3,8")
        self.text, self.problem = text, problem


def _parse_mask(text: str) -> int:
    """The bit mask of a kernel list; see `CpuSet.parse`."""
    if not _LIST.match(text) or text.endswith("\n"):
        raise ListFormatError(text, "only digits, '-' between two ids and ',' between parts")
    ranges, singles = 0, bytearray(MAX_ID // 8 + 1)
    for part in filter(None, text.split(",")):
        first, dash, last = part.partition("-")
        low, high = int(first), int(last or first)
        if low > high:
            raise ListFormatError(text, f"the range {part} runs backwards")
        if high > MAX_ID:
            raise ListFormatError(text, f"{high} is above {MAX_ID}")
        if dash:
            ranges |= (1 << high + 1) - (1 << low)
        else:
            singles[low >> 3] |= 1 << (low & 7)
    return ranges | int.from_bytes(singles, "little")


@lru_cache(maxsize=4096)
def _list_of(mask: int) -> str:
    """The kernel list of a bit mask."""
    parts: list[str] = []
    base = 0
    while mask:
        skip = (mask & -mask).bit_length() - 1
        mask >>= skip
        run = (~mask & (mask + 1)).bit_length() - 1
        low = base + skip
        parts.append(str(low) if run == 1 else f"{low}-{low + run - 1}")
        mask >>= run
        base = low + run
    return ",".join(parts)


class _IdSet:
    """A frozen set of small integers, stored as a bit mask; the two kinds of ids do not mix."""

    __slots__ = ("mask",)

    mask: int
    """The set as a bit mask: bit N is set when N is a member. Plain, as loops over sets read it."""

    def __init__(self, ids: Iterable[int] = ()) -> None:
        mask = 0
        for one in ids:
            if not 0 <= one <= MAX_ID:
                raise ListFormatError(str(one), f"ids go from 0 to {MAX_ID}")
            mask |= 1 << one
        object.__setattr__(self, "mask", mask)

    @classmethod
    def from_mask(cls, mask: int) -> Self:
        """The set whose members are the positions of the bits set in `mask` (not negative)."""
        if mask < 0:
            raise ValueError(f"a mask is not negative: {mask}")
        made = cls.__new__(cls)
        object.__setattr__(made, "mask", mask)
        return made

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the kernel's list format: ids and ascending ranges, separated by commas.

        An empty text is the empty set. White space is not accepted: strip a file's newline first.
        Source: cpuset(7), "List format".

        Raises:
            ListFormatError: anything else.
        """
        if len(text) > SHORT_LIST:
            return _parse(cls, text)
        # mypy compares the method of the sets with Hashable, not that of their class
        found: Self = _parse_short(cls, text)  # type: ignore[arg-type]
        return found

    @classmethod
    def union(cls, sets: Iterable[Self]) -> Self:
        """The members of all `sets`; empty if there is none."""
        mask = 0
        for one in sets:
            mask |= one.mask
        return cls.from_mask(mask)

    @classmethod
    def grouped(cls, members: Iterable[tuple[int, int]]) -> dict[int, Self]:
        """The set of each group, by ascending group, from pairs of a group and a member of it."""
        masks: dict[int, int] = {}
        for group, member in members:
            masks[group] = masks.get(group, 0) | 1 << member
        return {group: cls.from_mask(mask) for group, mask in sorted(masks.items())}

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self).from_mask, (self.mask,))

    def __iter__(self) -> Iterator[int]:
        mask = self.mask
        while mask:
            low = mask & -mask
            yield low.bit_length() - 1
            mask ^= low

    def __len__(self) -> int:
        return self.mask.bit_count()

    def __bool__(self) -> bool:
        return self.mask != 0

    def __contains__(self, one: object) -> bool:
        return isinstance(one, int) and one >= 0 and bool(self.mask >> one & 1)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.mask == self.mask

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.mask))

    def __or__(self, other: Self) -> Self:
        return self.from_mask(self.mask | self._same(other))

    def __and__(self, other: Self) -> Self:
        return self.from_mask(self.mask & self._same(other))

    def __sub__(self, other: Self) -> Self:
        return self.from_mask(self.mask & ~self._same(other))

    def __xor__(self, other: Self) -> Self:
        return self.from_mask(self.mask ^ self._same(other))

    def __le__(self, other: Self) -> bool:
        return not self.mask & ~self._same(other)

    def __lt__(self, other: Self) -> bool:
        return self <= other and self != other

    def __ge__(self, other: Self) -> bool:
        return other <= self

    def __gt__(self, other: Self) -> bool:
        return other < self

    def isdisjoint(self, other: Self) -> bool:
        """Whether the two sets have no member in common."""
        return not self.mask & self._same(other)

    def _same(self, other: Self) -> int:
        if type(other) is not type(self):
            raise TypeError(f"{type(self).__name__} does not mix with {type(other).__name__}")
        return other.mask

    def __str__(self) -> str:
        return _list_of(self.mask)

    def __repr__(self) -> str:
        return f"{type(self).__name__}.parse({str(self)!r})"

    @classmethod
    def _validate(cls, value: object) -> Self:
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            if len(value) > LIST_LENGTH:
                raise ListFormatError(value, f"it has more than {LIST_LENGTH} characters")
            return cls.parse(value)
        raise ListFormatError(repr(value), "a text is expected")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: Any) -> dict[str, Any]:
        """How models check and write it: as text.

        The dictionary is what functions of `pydantic_core.core_schema` would return. The standby
        uses sets without models, and so without pydantic.
        """
        return {
            "type": "function-plain",
            "function": {"type": "no-info", "function": cls._validate},
            "serialization": {"type": "function-plain", "function": str},
        }

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        return {"type": "string", "pattern": LIST_PATTERN, "maxLength": LIST_LENGTH}


_Set = TypeVar("_Set", bound=_IdSet)


def _parse(kind: type[_Set], text: str) -> _Set:
    return kind.from_mask(_parse_mask(text))


@lru_cache(maxsize=4096)
def _parse_short(kind: type[_Set], text: str) -> _Set:
    """The cores of all machines of a model are the same short lists: their sets are one value."""
    return _parse(kind, text)


class CpuSet(_IdSet):
    """A set of logical CPUs; prints as the kernel's list, `CpuSet - CpuSet` is a `CpuSet`."""

    __slots__ = ()


class MemSet(_IdSet):
    """A set of NUMA nodes, as in `cpuset.mems`."""

    __slots__ = ()
