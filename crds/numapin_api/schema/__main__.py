"""Print what is generated from the models: the CRDs, and the table of reasons."""

import argparse
from pathlib import Path
from typing import Any, Final

import yaml

from numapin_api.conditions import Reason
from numapin_api.schema.definitions import definitions

REASONS_HEAD: Final = """\
# Reasons

Each condition of a CpuPolicy or NodeAssignment, each entry of `spec.refused` and each Event gives
one of these reasons. [Troubleshooting](operations.md) says what to do about them. `make schema`
writes this page.

| reason | meaning |
|---|---|
"""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def to_yaml(definition: dict[str, Any]) -> str:
    """One definition as a YAML document, keys in the order given."""
    return yaml.dump(definition, Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True)


def reasons_page() -> str:
    """The text of docs/reasons.md."""
    return REASONS_HEAD + "".join(f"| `{one}` | {one.meaning} |\n" for one in Reason)


def main() -> None:
    """Read the command line and print, or write the CRDs into their files."""
    parser = argparse.ArgumentParser(prog="python -m numapin_api.schema", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    crds = commands.add_parser("crds", help="print the CustomResourceDefinitions as YAML")
    crds.add_argument(
        "--write", metavar="DIR", type=Path, help="write each into its file in DIR instead"
    )
    commands.add_parser("reasons", help="print the table of reasons as Markdown")
    arguments = parser.parse_args()
    if arguments.command == "reasons":
        print(reasons_page(), end="")  # noqa: T201
        return
    for name, definition in definitions().items():
        if arguments.write is None:
            print(f"---\n{to_yaml(definition)}", end="")  # noqa: T201
        else:
            (arguments.write / name).write_text(to_yaml(definition), encoding="utf-8")


if __name__ == "__main__":
    main()
