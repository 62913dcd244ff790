"""Names like one that does not exist. Does no I/O."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

from numapin_api.text import first_texts

_MOST: Final = 3
_ALIKE: Final = 0.6
_PART: Final = 3
"""Letters of a name that is likely to be meant if it is part of a wrong one."""


def near_names(wrong: str, known: Iterable[str]) -> list[str]:
    """The names most like a wrong one: misspelt, or part of it."""
    names = sorted(set(known))
    alike = {name: SequenceMatcher(None, name, wrong).ratio() for name in names}
    best = sorted(names, key=lambda name: (-alike[name], name))
    close = [name for name in best[:_MOST] if alike[name] >= _ALIKE]
    parts = [
        name
        for name in names
        if (wrong and wrong in name) or (len(name) >= _PART and name in wrong)
    ]
    return list(dict.fromkeys([*close, *parts]))[:_MOST]


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """A sentence with the names most like a wrong one, and what there is if none is."""
    names = sorted(set(known))
    if near := near_names(wrong, names):
        return f"did you mean {' or '.join(filter(None, (', '.join(near[:-1]), near[-1])))}?"
    if not names:
        return "there is none at all"
    return f"there is {first_texts(names, _MOST)}"
