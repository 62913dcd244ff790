"""One schema with the fields of two, for versions between which nothing converts. Does no I/O."""

from collections.abc import Mapping
from typing import Any

from numapin_api.meta.cel_rules import VALIDATIONS

Schema = dict[str, Any]


def superset(one: Mapping[str, Any], other: Mapping[str, Any]) -> Schema:
    """A schema that has the fields of two.

    A field is required if both require it, and the rules of both hold; all else, such as a
    description, is as in the first.
    """
    made: Schema = {**one}
    mine, theirs = one.get("properties", {}), other.get("properties", {})
    if mine or theirs:
        both = {name: superset(mine[name], theirs[name]) for name in mine if name in theirs}
        made["properties"] = {**mine, **both, **{k: v for k, v in theirs.items() if k not in mine}}
        required = [name for name in one.get("required", ()) if name in other.get("required", ())]
        made.pop("required", None)
        made |= {"required": required} if required else {}
    if rules := [*one.get(VALIDATIONS, ()), *other.get(VALIDATIONS, ())]:
        made[VALIDATIONS] = rules
    return made
