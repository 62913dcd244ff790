"""Print what is generated from the models: the CRDs, the rules of a spec, the table of reasons."""

import argparse
from pathlib import Path
from pprint import pformat
from typing import Any, Final

import yaml

from numapin_api.conditions.reasons import Reason
from numapin_api.meta.wire import WireModel
from numapin_api.nodeassignment import NodeAssignmentSpec, NodeAssignmentStatus
from numapin_api.schema.check import KEYWORDS
from numapin_api.schema.definitions import SchemaError, definitions, structural
from numapin_api.schema.plain_module import NODE, OPERATOR, plain_module

REASONS_HEAD: Final = """\
# Reasons

Each condition of a CpuPolicy or NodeReport, each refusal in a NodeAssignment and each Event gives
one of these reasons. [Troubleshooting](operations.md) says what to do about them. `make schema`
writes this page.

| reason | meaning |
|---|---|
"""


SPEC_HEAD: Final = '''\
"""What the spec of a NodeAssignment must be, for programs without the models.

`make schema` writes this file from the models.
"""

from typing import Any, Final

SPEC_SCHEMA: Final[dict[str, Any]] = '''

STATUS_HEAD: Final = '''\
"""What the parts of a NodeAssignment's status must be that the operator uses.

`make schema` writes this file from the models.
"""

from typing import Any, Final

STATUS_SCHEMA: Final[dict[str, Any]] = '''

FORMS: Final = {"node": NODE, "operator": OPERATOR}
"""The plain classes by the program that has them."""

SAYS_NOTHING: Final = frozenset({"description", "default", "format"})
"""Keywords that refuse no value; so do those that begin with `x-`."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def to_yaml(definition: dict[str, Any]) -> str:
    """One definition as a YAML document, keys in the order given."""
    return yaml.dump(definition, Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True)


def reasons_page() -> str:
    """The text of docs/reasons.md."""
    return REASONS_HEAD + "".join(f"| `{one}` | {one.meaning} |\n" for one in Reason)


def spec_module(model: type[WireModel]) -> str:
    """The text of schema/assignment_spec.py, by the model of a spec.

    Raises:
        SchemaError: the model has a rule that is not checked by schema/check.py.
    """
    rules = _rules(structural(model), "spec")
    return f"{SPEC_HEAD}{pformat(rules, width=100, sort_dicts=False)}\n"


def status_module(model: type[WireModel]) -> str:
    """The text of schema/assignment_status.py, by the model of a status.

    Raises:
        SchemaError: as `spec_module`.
    """
    omitted = OPERATOR.omitted[model.__name__]
    schema = structural(model)
    for name, field in model.model_fields.items():
        if name in omitted:
            del schema["properties"][field.alias]
    rules = _rules(schema, "status")
    return f"{STATUS_HEAD}{pformat(rules, width=100, sort_dicts=False)}\n"


def _rules(schema: dict[str, Any], path: str) -> dict[str, Any]:
    """A schema without the keywords that refuse no value."""
    kept = {
        key: value
        for key, value in schema.items()
        if key not in SAYS_NOTHING and not key.startswith("x-")
    }
    if strange := kept.keys() - KEYWORDS:
        raise SchemaError(path, f"{', '.join(sorted(strange))} is not checked by schema/check.py")
    if "properties" in kept:
        properties = kept["properties"].items()
        kept["properties"] = {name: _rules(one, f"{path}.{name}") for name, one in properties}
    if "additionalProperties" in kept:
        kept["additionalProperties"] = _rules(kept["additionalProperties"], f"{path}[]")
    if "items" in kept:
        kept["items"] = _rules(kept["items"], f"{path}[]")
    return kept


def _text(arguments: argparse.Namespace) -> str:
    """The text of the file that a command prints."""
    match arguments.command:
        case "reasons":
            return reasons_page()
        case "spec":
            return spec_module(NodeAssignmentSpec)
        case "status":
            return status_module(NodeAssignmentStatus)
        case _:
            form = FORMS[arguments.form]
            return plain_module(NodeAssignmentSpec, NodeAssignmentStatus, form)


def main() -> None:
    """Read the command line and print, or write the CRDs into their files."""
    parser = argparse.ArgumentParser(prog="python -m numapin_api.schema", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    crds = commands.add_parser("crds", help="print the CustomResourceDefinitions as YAML")
    crds.add_argument(
        "--write", metavar="DIR", type=Path, help="write each into its file in DIR instead"
    )
    commands.add_parser("spec", help="print the rules of a NodeAssignment's spec as Python")
    commands.add_parser("status", help="print the rules of what the operator uses of its status")
    plain = commands.add_parser("plain", help="print the plain classes of a NodeAssignment")
    plain.add_argument("form", choices=FORMS, help="the program that has them")
    commands.add_parser("reasons", help="print the table of reasons as Markdown")
    arguments = parser.parse_args()
    if arguments.command != "crds":
        print(_text(arguments), end="")  # noqa: T201
        return
    for name, definition in definitions().items():
        if arguments.write is None:
            print(f"---\n{to_yaml(definition)}", end="")  # noqa: T201
        else:
            (arguments.write / name).write_text(to_yaml(definition), encoding="utf-8")


if __name__ == "__main__":
    main()
