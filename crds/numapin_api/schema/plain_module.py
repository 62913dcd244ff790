"""Writes plain classes from the models: the same fields, read from JSON and written to it.

Programs without the models use them (see `numapin_api.schema.plain`). What a value must be is
checked before it is read (see `numapin_api.schema.check`). Does no I/O.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.meta.wire import WireModel
from numapin_api.schema.definitions import SchemaError

OMITTED: Final[Mapping[str, frozenset[str]]] = {
    "NodeAssignmentSpec": frozenset({"policy", "refused_resizes"}),
    "ContainerAssignment": frozenset({"memory", "grants", "moving", "moved_at"}),
    "NodeAssignmentStatus": frozenset({"last_pass_time", "conditions"}),
}
"""Fields by model that plain values do not have.

In a spec they are the operator's own notes: specs that differ in them alone are equal on a node. In
a status they depend on the status before.
"""

AS_JSON: Final = frozenset({"TopologyStatus", "FreeHugepages", "Refusal"})
"""Models whose plain value is the JSON object: it is passed on, and not looked into."""

HEAD: Final = '''\
"""Spec and status of a NodeAssignment as plain values: the fields are those of the models.

The models take 9 MiB of memory in each process. `make schema` writes this file from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.meta.derived import HasExclusiveCpus, OfContainer
'''

_INDENT: Final = " " * 4


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a value is declared, read and written; `{}` stands for the expression of the value.

    `empty` is the JSON of an empty value, as Python.
    """

    type: str
    read: str = "{}"
    write: str = "{}"
    empty: str = ""


_SCALARS: Final = {one: _Kind(one.__name__) for one in (str, int, bool)}
_SETS: Final = {
    one: _Kind(one.__name__, f"{one.__name__}.parse({{}})", "str({})", '""')
    for one in (CpuSet, MemSet)
}
_JSON: Final = _Kind("Mapping[str, Any]")


def plain_module(spec: type[WireModel], status: type[WireModel]) -> str:
    """The text of schema/plain.py; specs are read and written, a status is only written.

    Raises:
        SchemaError: a field has a type that is not known here.
    """
    read = {one.__name__: one for one in _models(spec)}
    written = {one.__name__: one for one in _models(status)} | read
    classes = (_class(one, reads=name in read) for name, one in written.items())
    return HEAD + "".join(classes)


def _models(model: type[WireModel]) -> Iterator[type[WireModel]]:
    """The models that a model consists of, each after those that it uses."""
    for _, field in _fields(model):
        for inner in _parts(field.annotation):
            if _is_model(inner) and inner.__name__ not in AS_JSON:
                yield from _models(inner)
    yield model


def _fields(model: type[WireModel]) -> list[tuple[str, FieldInfo]]:
    omitted = OMITTED.get(model.__name__, frozenset())
    return [(name, one) for name, one in model.model_fields.items() if name not in omitted]


def _parts(annotation: Any) -> Iterator[Any]:
    """A type and all types that it is made of."""
    yield annotation
    for inner in get_args(annotation):
        yield from _parts(inner)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, WireModel)


def _class(model: type[WireModel], *, reads: bool) -> str:
    fields = [_Field.of(model, name, one) for name, one in _fields(model)]
    mixins = (one for one in model.__mro__ if one not in WireModel.__mro__)
    shared = ", ".join(one.__name__ for one in mixins if not issubclass(one, WireModel))
    lines = [
        *("", "", "@dataclass(frozen=True, slots=True)"),
        f"class {model.__name__}({shared}):" if shared else f"class {model.__name__}:",
        f'{_INDENT}"""{_docstring(model)}"""',
        "",
        *(f"{_INDENT}{one.declared}" for one in fields),
    ]
    if reads:
        lines += ["", *(f"{_INDENT}{one}" if one else "" for one in _from_wire(model, fields))]
    lines += ["", *(f"{_INDENT}{one}" for one in _to_wire(fields))]
    return "\n".join(lines) + "\n"


def _docstring(model: type[WireModel]) -> str:
    text = (model.__doc__ or "").strip()
    return f"{text}\n{_INDENT}" if "\n" in text else text


@dataclass(frozen=True, slots=True)
class _Field:
    """One field: its declaration, and the expressions that read it from `wire` and write it."""

    declared: str
    read: str
    write: str
    key: str
    optional: bool

    @classmethod
    def of(cls, model: type[WireModel], name: str, info: FieldInfo) -> "_Field":
        """Make it from the field of a model."""
        path, key = f"{model.__name__}.{name}", info.alias or name
        optional = NoneType in get_args(info.annotation)
        kind = _kind(info.annotation, path)
        default = _default(info)
        declared = f"{name}: {kind.type}{' | None' if optional else ''}{default}"
        value = f"self.{name}"
        write = kind.write.format(value)
        if optional and kind.write != "{}":
            write = f"None if {value} is None else {write}"
        return cls(declared, _read(kind, info, key), write, key, optional)


def _kind(annotation: Any, path: str) -> _Kind:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Annotated, UnionType, Union):
        return _kind(next(one for one in inner if one is not NoneType), path)
    if origin is Literal:
        return _kind(type(inner[0]), path)
    if origin is tuple and inner[1:] == (...,):
        return _list(_kind(inner[0], path))
    if origin is dict and inner[0] is str:
        return _Kind(f"Mapping[str, {_kind(inner[1], path).type}]", "dict({})", "dict({})", "{}")
    if _is_model(annotation):
        name = annotation.__name__
        read, write = f"{name}.from_wire({{}})", "{}.to_wire()"
        return _JSON if name in AS_JSON else _Kind(name, read, write)
    found = _SCALARS.get(annotation) or _SETS.get(annotation)
    if found is None:
        raise SchemaError(path, f"{annotation} has no plain counterpart in schema/plain_module.py")
    return found


def _list(entry: _Kind) -> _Kind:
    read, write = (text.format("one") for text in (entry.read, entry.write))
    return _Kind(
        f"tuple[{entry.type}, ...]",
        "tuple({})" if read == "one" else f"tuple({read} for one in {{}})",
        "list({})" if write == "one" else f"[{write} for one in {{}}]",
        "()",
    )


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return ""
    if info.default_factory is not None:
        return f" = field(default_factory={info.default_factory.__name__})"
    default = info.default
    return f" = {type(default).__name__}()" if default in _EMPTY_SETS else f" = {_literal(default)}"


def _literal(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


_EMPTY_SETS: Final = (CpuSet(), MemSet())


def _read(kind: _Kind, info: FieldInfo, key: str) -> str:
    if info.is_required():
        return kind.read.format(f'wire["{key}"]')
    if info.default is None and info.default_factory is None:
        if kind.read == "{}":
            return f'wire.get("{key}")'
        return f'{kind.read.format("found")} if (found := wire.get("{key}")) is not None else None'
    return kind.read.format(f'wire.get("{key}", {kind.empty or _literal(info.default)})')


def _from_wire(model: type[WireModel], fields: list[_Field]) -> Iterator[str]:
    yield "@classmethod"
    yield f'def from_wire(cls, wire: Mapping[str, Any]) -> "{model.__name__}":'
    yield f'{_INDENT}"""The value of a JSON object without faults; unknown fields are dropped."""'
    yield f"{_INDENT}return cls("
    yield from (f"{_INDENT * 2}{one.read}," for one in fields)
    yield f"{_INDENT})"


def _to_wire(fields: list[_Field]) -> Iterator[str]:
    yield "def to_wire(self) -> dict[str, Any]:"
    yield f'{_INDENT}"""The value as a JSON object, without the unset (None) fields."""'
    optional = any(one.optional for one in fields)
    yield f"{_INDENT}{'wire: dict[str, Any] =' if optional else 'return'} {{"
    yield from (f'{_INDENT * 2}"{one.key}": {one.write},' for one in fields)
    yield f"{_INDENT}}}"
    if optional:
        yield f"{_INDENT}return {{key: value for key, value in wire.items() if value is not None}}"
