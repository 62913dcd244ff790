"""CEL rules of the CRDs' schemas, which the API server checks at each write. Does no I/O."""

from typing import Any, Final

VALIDATIONS: Final = "x-kubernetes-validations"


def rule(expression: str, message: str, field: str | None = None) -> dict[str, str]:
    """One CEL rule: an expression that is true for valid values, and the message for others."""
    made = {"rule": expression, "message": message}
    return made | {"fieldPath": field} if field else made


def rules(*each: dict[str, str]) -> dict[str, Any]:
    """The schema extension with CEL rules, for `json_schema_extra`."""
    return {VALIDATIONS: list(each)}


def readable_cpu_list(schema: dict[str, Any]) -> None:
    """Replace the pattern of a kernel list by rules whose messages say what is wrong.

    The API server limits the estimated cost of rules, so only lists that people write have them,
    with a shorter `maxLength`. The others keep the pattern and are checked when they are parsed.
    """
    shape = f"self.matches('{schema.pop('pattern')}')"
    ranges = "self.split(',').filter(r, r.contains('-'))"
    ascending = f"{ranges}.all(r, int(r.split('-')[0]) <= int(r.split('-')[1]))"
    how = "write it like 0-3,8"
    schema["maxLength"] = 1024
    schema |= rules(
        rule(shape, f"this is not a list of CPUs: {how}"),
        rule(f"!{shape} || {ascending}", f"a range runs backwards: {how}"),
    )


LABEL_KEY: Final = (
    r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)
LABEL_VALUE: Final = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"


def label_map_rules() -> dict[str, Any]:
    """Rules against keys and values that no label can have, which would never match.

    Source: Kubernetes, "Labels and Selectors", syntax and character set.
    """
    return rules(
        rule(
            f"self.all(key, key.matches('{LABEL_KEY}'))",
            "each key is a label key such as example.com/pool",
        ),
        rule(
            f"self.all(key, self[key].matches('{LABEL_VALUE}'))",
            "each value is a label value: letters, digits, '-', '_' and '.', at most 63",
        ),
    )
