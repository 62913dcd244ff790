"""What stands in a file that something has damaged, or that somebody has written on purpose."""

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

TEXTS = st.sampled_from(
    ["", "0", "-1", "0-7", "7-0", "0-99999999", ",", "\0", "\ud800", "NaN", "../x", "x" * 300]
) | st.text(max_size=8)
NUMBERS = st.integers() | st.floats() | st.sampled_from([1 << 70, -1, True])
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS


def documents(names: Sequence[str]) -> st.SearchStrategy[Any]:
    """JSON values of any shape, in which the fields of a real file appear."""
    keys = st.sampled_from(list(names)) | TEXTS
    return st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=12,
    )


@st.composite
def spoiled(draw: st.DrawFn, sound: Any, names: Sequence[str]) -> Any:
    """A sound document in which some value, anywhere, is another one or is missing."""
    if not isinstance(sound, dict | list) or not sound or draw(st.integers(0, 5)) == 0:
        return draw(documents(names))
    place = draw(st.sampled_from(list(sound) if isinstance(sound, dict) else range(len(sound))))
    changed = sound.copy()
    if draw(st.booleans()):
        changed[place] = draw(spoiled(sound[place], names))
    else:
        del changed[place]
    return changed


def contents(sound: Any, names: Sequence[str]) -> st.SearchStrategy[bytes]:
    """Bytes of a file that should hold a document as `sound`."""
    written = (spoiled(sound, names) | documents(names)).map(json.dumps).map(str.encode)
    cut = st.tuples(written, st.integers(0, 400)).map(lambda one: one[0][: one[1]])
    deep = st.sampled_from([b"[" * 100_000, b'{"a":' * 100_000, b"1" * 5000])
    return written | cut | deep | st.binary(max_size=60)
