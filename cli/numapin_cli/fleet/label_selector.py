"""Label selectors as people write them after `-l`.

Source: Kubernetes v1.36, apimachinery, `labels.Parse`, without the operators `>` and `<`.

Does no I/O.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from numapin_api.meta.matching import holds
from numapin_cli.subcommand import UsageError

_KEY: Final = r"(?P<key>[A-Za-z0-9][\w./-]*)"
_VALUE: Final = r"[\w.-]*"
_FORMS: Final = (
    (re.compile(rf"{_KEY}\s*(?P<operator>!=|==?)\s*(?P<values>{_VALUE})"), None),
    (re.compile(rf"{_KEY}\s+(?P<operator>in|notin)\s*\((?P<values>[\w.,\s-]*)\)"), ","),
    (re.compile(rf"(?P<operator>!?)\s*{_KEY}(?P<values>)"), None),
)
_OPERATORS: Final = {
    "=": "In",
    "==": "In",
    "in": "In",
    "!=": "NotIn",
    "notin": "NotIn",
    "": "Exists",
    "!": "DoesNotExist",
}
_BETWEEN: Final = re.compile(r",(?![^(]*\))")
"""A comma that is not between parentheses."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression."""

    key: str
    operator: str
    values: Collection[str]


@dataclass(frozen=True, slots=True)
class Selector:
    """Expressions that must all hold."""

    requirements: tuple[Requirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Selector":
        """Read a selector such as `pool=fast,zone in (a, b),!spot`; an empty one selects all.

        Raises:
            UsageError: a part of it is none.
        """
        parts = (one.strip() for one in _BETWEEN.split(text)) if text.strip() else ()
        return cls(tuple(_requirements(parts)))

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether labels satisfy all of it."""
        return all(holds(one, labels) for one in self.requirements)


def _requirements(parts: Iterator[str] | tuple[()]) -> Iterator[Requirement]:
    for part in parts:
        for form, separator in _FORMS:
            if found := form.fullmatch(part):
                values = [one.strip() for one in found["values"].split(separator or "\0")]
                operator = _OPERATORS[found["operator"]]
                yield Requirement(found["key"], operator, values if operator[-2:] == "In" else ())
                break
        else:
            raise UsageError(
                f"-l: {part!r} is no label selector; write key=value, key!=value, key in (a,b),"
                " key notin (a,b), key or !key, separated by commas"
            )
