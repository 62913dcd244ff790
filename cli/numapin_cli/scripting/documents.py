"""Documents for scripts."""

import json
from collections.abc import Iterable, Iterator
from textwrap import indent
from typing import Any

import yaml

from numapin_cli.arguments import JSONPATH
from numapin_cli.scripting.jsonpath import choose


def document(content: dict[str, Any], output: str) -> str:
    """A document for scripts: `json`, `yaml`, or what `jsonpath=TEMPLATE` chooses from it.

    Raises:
        UsageError: the template is none.
    """
    if output.startswith(JSONPATH):
        return choose(output.removeprefix(JSONPATH), content)
    if output == "json":
        return json.dumps(content, indent=2) + "\n"
    return str(yaml.safe_dump(content, sort_keys=False, width=100))


def json_list(name: str, items: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The text of `{name: [items]}` in parts, an item each, as `document` writes it in JSON."""
    begun = False
    for item in items:
        begin = f'{{\n  "{name}": [\n' if not begun else ",\n"
        yield begin + indent(json.dumps(item, indent=2), "    ")
        begun = True
    yield "\n  ]\n}\n" if begun else f'{{\n  "{name}": []\n}}\n'
