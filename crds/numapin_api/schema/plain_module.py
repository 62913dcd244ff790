"""Writes plain classes from the models: the same fields, read from JSON and written to it.

An enforcer has those of `schema/plain.py`, the operator those of `schema/plain_assignment.py`. What
a value must be is checked before it is read: see `schema/check.py`. Does no I/O.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.meta.wire import WireModel
from numapin_api.schema.definitions import SchemaError

IMPORTS: Final = """
from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import intern
from typing import Any

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.meta.derived import HasExclusiveCpus, HasRefusals, OfContainer
"""


@dataclass(frozen=True, slots=True)
class Form:
    """Which fields of the models the plain classes of a program have.

    Attributes:
        docstring: that of the module.
        omitted: the fields that plain values do not have, by model.
        as_json: models whose plain value is the JSON object: it is passed on, and not looked into.
        reads_status: whether a status is read too, and not only written.
        interned: texts that many objects have in common, by field: they share their memory.
    """

    docstring: str
    omitted: Mapping[str, frozenset[str]]
    as_json: frozenset[str] = frozenset()
    reads_status: bool = False
    interned: frozenset[str] = frozenset()


NODE: Final = Form(
    '''\
"""Spec and status of a NodeAssignment as plain values: the fields are those of the models.

The models take 9 MiB of memory in each process. `make schema` writes this file from them.
"""
''',
    omitted={
        "NodeAssignmentSpec": frozenset({"policy", "refused_resizes"}),
        "ContainerAssignment": frozenset({"grants", "moving", "moved_at"}),
        "NodeAssignmentStatus": frozenset({"last_pass_time", "conditions"}),
    },
    as_json=frozenset({"TopologyStatus", "FreeHugepages", "Refusal", "StartGate"}),
)
"""What an enforcer needs: specs that differ in the operator's own notes alone are equal on a node.

What is left out of a status depends on the status before.
"""

OPERATOR: Final = Form(
    '''\
"""A NodeAssignment as the operator holds it: plain values with the fields of the models.

They take a fifth of the memory of the models. `make schema` writes this file from them.
"""
''',
    omitted={
        "NodeAssignmentStatus": frozenset({"topology", "pools", "refused", "outdated"})
        | {"drift_count", "drift_causes", "cgroup", "runtime", "boot_id", "last_pass_time"}
        | {"start_gate", "system"}
    },
    reads_status=True,
    interned=frozenset({"namespace", "container", "resource", "type", "status", "reason"}),
)
"""What the operator needs: the whole spec, and what decisions use of a status."""

_INDENT: Final = " " * 4
_LINE_LENGTH: Final = 100


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


def plain_module(spec: type[WireModel], status: type[WireModel], form: Form = NODE) -> str:
    """The text of a module with the plain classes of a spec and a status.

    Raises:
        SchemaError: a field has a type that is not known here.
    """
    of_status = {one.__name__: one for one in _models(status, form)}
    of_spec = {one.__name__: one for one in _models(spec, form)}
    read = of_spec.keys() | (of_status.keys() if form.reads_status else ())
    each = (of_status | of_spec).items()
    classes = "".join(_class(one, form, reads=name in read) for name, one in each)
    return form.docstring + _imports(classes) + classes


def _imports(classes: str) -> str:
    """The imports, without the names that are not used."""
    imports = IMPORTS if " intern(" in classes else IMPORTS.replace("from sys import intern\n", "")
    return imports if "field(" in classes else imports.replace("dataclass, field", "dataclass")


def _models(model: type[WireModel], form: Form) -> Iterator[type[WireModel]]:
    """The models that a model consists of, each after those that it uses."""
    for _, field in _fields(model, form):
        for inner in _parts(field.annotation):
            if _is_model(inner) and inner.__name__ not in form.as_json:
                yield from _models(inner, form)
    yield model


def _fields(model: type[WireModel], form: Form) -> list[tuple[str, FieldInfo]]:
    omitted = form.omitted.get(model.__name__, frozenset())
    return [(name, one) for name, one in model.model_fields.items() if name not in omitted]


def _parts(annotation: Any) -> Iterator[Any]:
    """A type and all types that it is made of."""
    yield annotation
    for inner in get_args(annotation):
        yield from _parts(inner)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, WireModel)


def _class(model: type[WireModel], form: Form, *, reads: bool) -> str:
    fields = [_Field.of(model, name, one, form) for name, one in _fields(model, form)]
    by_default = sorted(fields, key=lambda one: one.has_default)
    mixins = (one for one in model.__mro__ if one not in WireModel.__mro__)
    shared = ", ".join(one.__name__ for one in mixins if not issubclass(one, WireModel))
    lines = [
        *("", "", "@dataclass(frozen=True, slots=True)"),
        f"class {model.__name__}({shared}):" if shared else f"class {model.__name__}:",
        f'{_INDENT}"""{_docstring(model)}"""',
        "",
        *(f"{_INDENT}{one.declared}" for one in by_default),
    ]
    if reads:
        lines += ["", *(f"{_INDENT}{one}" if one else "" for one in _from_wire(model, by_default))]
    lines += ["", *(f"{_INDENT}{one}" for one in _to_wire(fields))]
    return "\n".join(lines) + "\n"


def _docstring(model: type[WireModel]) -> str:
    text = (model.__doc__ or "").strip()
    return f"{text}\n{_INDENT}" if "\n" in text else text


@dataclass(frozen=True, slots=True)
class _Field:
    """One field: its declaration, and the expressions that read it from `wire` and write it.

    Those without a default are declared first, as a dataclass demands, and written in their place.
    """

    name: str
    declared: str
    has_default: bool
    read: str
    write: str
    key: str
    optional: bool

    @classmethod
    def of(cls, model: type[WireModel], name: str, info: FieldInfo, form: Form) -> "_Field":
        """Make it from the field of a model."""
        path, key = f"{model.__name__}.{name}", info.alias or name
        optional = NoneType in get_args(info.annotation)
        kind = _kind(info.annotation, path, form)
        if name in form.interned and info.is_required():
            kind = replace(kind, read="intern({})")
        default = _default(info)
        declared = f"{name}: {kind.type}{' | None' if optional else ''}{default}"
        value = f"self.{name}"
        write = kind.write.format(value)
        return cls(name, declared, bool(default), _read(kind, info, key), write, key, optional)


def _kind(annotation: Any, path: str, form: Form) -> _Kind:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Annotated, UnionType, Union):
        return _kind(next(one for one in inner if one is not NoneType), path, form)
    if origin is Literal:
        return _kind(type(inner[0]), path, form)
    if origin is tuple and inner[1:] == (...,):
        return _list(_kind(inner[0], path, form))
    if origin is dict and inner[0] is str:
        value = _kind(inner[1], path, form)
        return _Kind(f"Mapping[str, {value.type}]", "dict({})", "dict({})", "{}")
    if _is_model(annotation):
        name = annotation.__name__
        read, write = f"{name}.from_wire({{}})", "{}.to_wire()"
        return _JSON if name in form.as_json else _Kind(name, read, write)
    found = _SCALARS.get(annotation) or _SETS.get(annotation)
    if found is None:
        raise SchemaError(path, f"{annotation} has no plain counterpart in schema/plain_module.py")
    return found


def _list(entry: _Kind) -> _Kind:
    write, function = entry.write.format("one"), entry.read.removesuffix("({})")
    return _Kind(
        f"tuple[{entry.type}, ...]",
        "tuple({})" if function == "{}" else f"tuple(map({function}, {{}}))",
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
    default = {} if info.default_factory is not None else info.default
    return kind.read.format(f'wire.get("{key}", {kind.empty or _literal(default)})')


def _from_wire(model: type[WireModel], fields: list[_Field]) -> Iterator[str]:
    yield "@classmethod"
    yield f'def from_wire(cls, wire: Mapping[str, Any]) -> "{model.__name__}":'
    yield f'{_INDENT}"""The value of a JSON object without faults; unknown fields are dropped."""'
    yield f"{_INDENT}return cls("
    yield from (_wrapped(f"{_INDENT * 2}{one.read},") for one in fields)
    yield f"{_INDENT})"


def _to_wire(fields: list[_Field]) -> Iterator[str]:
    """The method that writes a value: the fields before the first optional one at once."""
    yield "def to_wire(self) -> dict[str, Any]:"
    yield f'{_INDENT}"""The value as a JSON object, without the unset (None) fields."""'
    first = next((at for at, one in enumerate(fields) if one.optional), len(fields))
    begun = f"{_INDENT}{'wire: dict[str, Any] =' if first < len(fields) else 'return'} {{"
    if first:
        yield begun
        yield from (_wrapped(f'{_INDENT * 2}"{one.key}": {one.write},') for one in fields[:first])
    yield f"{_INDENT}}}" if first else f"{begun}}}"
    for one in fields[first:]:
        if one.optional:
            yield f"{_INDENT}if self.{one.name} is not None:"
        yield f'{_INDENT * (2 if one.optional else 1)}wire["{one.key}"] = {one.write}'
    if first < len(fields):
        yield f"{_INDENT}return wire"


def _wrapped(line: str) -> str:
    """A line of a method; one that would be too long is broken as `ruff format` does."""
    if len(line) + len(_INDENT) <= _LINE_LENGTH:
        return line
    return re.sub(
        r" (if \S.* is (?:not )?None) else ", rf"\n{_INDENT * 3}\1\n{_INDENT * 3}else ", line
    )
