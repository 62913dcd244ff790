"""What `-o jsonpath=TEMPLATE` chooses from a document, as kubectl chooses it.

Source: Kubernetes v1.36, client-go, util/jsonpath; kubectl reference, "JSONPath Support". Not taken
are regular expressions, which kubectl has not either, and steps in slices.

Does no I/O.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final

from numapin_cli.subcommand import UsageError

_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<deep>\.\.(?P<any>[\w-]+|\*))
    | \.?\[\?\((?P<filter>.*?)\)\]
    | \.?\[(?P<inner>[^\]]*)\]
    | \.(?P<name>(?:\\.|[^\s.,\[\]$@{}\\])+)
    | (?P<root>[$@])
    | (?P<word>range\s|end)
    | (?P<dot>\.)
    )""",
    re.VERBOSE,
)
_CONDITION: Final = re.compile(r"(?P<left>.+?)\s*(?P<operator>==|!=|<=|>=|<|>)\s*(?P<right>.+)")
_SLICE: Final = re.compile(r"(-?\d*):(-?\d*)")
_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": eq,
    "!=": ne,
    "<": lt,
    ">": gt,
    "<=": le,
    ">=": ge,
}

Step = Callable[[Any], Iterator[Any]]
"""What one part of a path chooses from a value."""


@dataclass
class _Range:
    """What stands between `{range ...}` and `{end}`, for each value of the path."""

    path: Sequence[Step]
    parts: "list[str | Sequence[Step] | _Range]" = field(default_factory=list)


def choose(template: str, document: Any) -> str:
    """The text of a template, with what its paths choose from a document; no newline is added.

    A path without braces may be given alone. What is missing is nothing.

    Raises:
        UsageError: the template is none.
    """
    text = template if "{" in template else f"{{{template}}}"
    return "".join(_texts(_parsed(text), document))


def _texts(parts: Sequence[str | Sequence[Step] | _Range], value: Any) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, _Range):
            for one in _chosen(part.path, value):
                yield from _texts(part.parts, one)
        else:
            yield " ".join(map(_shown, _chosen(part, value)))


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"))


def _chosen(path: Sequence[Step], value: Any) -> list[Any]:
    found = [value]
    for step in path:
        found = [one for each in found for one in step(each)]
    return found


def _parsed(template: str) -> Sequence[str | Sequence[Step] | _Range]:
    """The parts of a template, in its order."""
    outer = _Range(())
    open_ranges = [outer]
    for number, text in enumerate(re.split(r"\{((?:[^{}\"']|\"[^\"]*\"|'[^']*')*)\}", template)):
        here = open_ranges[-1].parts
        if number % 2 == 0:
            if "{" in text or "}" in text:
                raise UsageError(f"-o jsonpath: a brace is not closed in {template!r}")
            here.append(text)
        elif text.strip() == "end":
            if len(open_ranges) == 1:
                raise UsageError(f"-o jsonpath: {{end}} without {{range}} in {template!r}")
            open_ranges.pop()
        elif text.strip().startswith("range "):
            inner = _Range(_path(text.strip().removeprefix("range ")))
            here.append(inner)
            open_ranges.append(inner)
        elif literal := re.fullmatch(r"\s*(\"[^\"]*\"|'[^']*')\s*", text):
            here.append(_unquoted(literal[1]))
        else:
            here.append(_path(text))
    if len(open_ranges) > 1:
        raise UsageError(f"-o jsonpath: {{range}} without {{end}} in {template!r}")
    return outer.parts


def _path(text: str) -> list[Step]:
    steps, at = list[Step](), 0
    text = text.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found["text"] or found["word"]:
            raise UsageError(f"-o jsonpath: {text[at:]!r} is no path; write .nodes[*].node")
        at = found.end()
        if found["deep"]:
            steps.append(_deep(found["any"]))
        elif found["filter"] is not None:
            steps.append(_filter(found["filter"]))
        elif found["inner"] is not None:
            steps.append(_inner(found["inner"]))
        elif found["name"]:
            steps.append(_field(found["name"].replace("\\.", ".")))
    return steps


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if name == "*":
            yield from _children(value)
        elif isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _deep(name: str) -> Step:
    own = _field(name)

    def step(value: Any) -> Iterator[Any]:
        yield from own(value)
        for child in _children(value):
            yield from step(child)

    return step


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _inner(text: str) -> Step:
    """What stands in brackets: `*`, numbers, a slice, or quoted names."""
    if text.strip() == "*":
        return _children
    if found := _SLICE.fullmatch(text.strip()):
        first, last = (int(one) if one else None for one in found.groups())
        return lambda value: iter(value[first:last] if isinstance(value, list) else ())
    chosen = [_one(one.strip(), text) for one in text.split(",")]
    return lambda value: (found for step in chosen for found in step(value))


def _one(text: str, whole: str) -> Step:
    if re.fullmatch(r"-?\d+", text):
        return _index(int(text))
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return _field(_unquoted(text))
    raise UsageError(f"-o jsonpath: [{whole}] is no index; write [0], [*], [0:2] or ['name']")


def _index(number: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= number < len(value):
            yield value[number]

    return step


def _filter(text: str) -> Step:
    """The members of a list for which a condition holds."""
    found = _CONDITION.fullmatch(text.strip())
    left = _operand(found["left"] if found else text)
    right = _operand(found["right"]) if found else None

    def holds(member: Any) -> bool:
        values = left(member)
        if found is None or right is None:
            return bool(values)
        return any(
            _compare(found["operator"], one, other) for one in values for other in right(member)
        )

    return lambda value: (one for one in _children(value) if holds(one))


def _compare(operator: str, left: Any, right: Any) -> bool:
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    try:
        return _OPERATORS[operator](left, right)
    except TypeError:
        return False


def _operand(text: str) -> Callable[[Any], list[Any]]:
    """A path of the member (`@.ready`), or a constant."""
    text = text.strip()
    if text.startswith(("@", ".")):
        path = _path(text)
        return lambda member: _chosen(path, member)
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return lambda _: [_unquoted(text)]
    try:
        constant = json.loads(text)
    except ValueError as wrong:
        problem = f'-o jsonpath: {text!r} is no constant; write "text", a number, true or @.field'
        raise UsageError(problem) from wrong
    return lambda _: [constant]


def _unquoted(text: str) -> str:
    """The content of quotes, with the escapes of JSON."""
    inner = text[1:-1].replace('"', '\\"') if text[0] == "'" else text[1:-1]
    try:
        return str(json.loads(f'"{inner}"'))
    except ValueError as wrong:
        raise UsageError(f"-o jsonpath: {text} has an escape that is none") from wrong
