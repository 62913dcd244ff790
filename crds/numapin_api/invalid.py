"""What pydantic found wrong with a document, as the field, the problem and the remedy."""

from typing import NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails


class InvalidField(NamedTuple):
    """One field that is wrong: its path, such as `spec.topology.policy`, and what to do."""

    field: str
    problem: str

    def __str__(self) -> str:
        return ": ".join(filter(None, self))


def invalid_fields(error: ValidationError, within: str = "") -> tuple[InvalidField, ...]:
    """Every wrong field, in pydantic's order; there is at least one.

    Args:
        error: why a document was refused.
        within: where that document stands in a larger one, such as `spec`.
    """
    return tuple(
        InvalidField(_path(within, finding["loc"]), _problem(finding))
        for finding in error.errors(include_url=False)
    )


def unknown_fields(kind: type[BaseModel], document: object, within: str = "") -> tuple[str, ...]:
    """The paths of fields that a model does not have, in a document that it reads without them."""
    try:
        kind.model_validate(document, extra="forbid")
    except ValidationError as error:
        findings = error.errors(include_url=False)
        strange = (one["loc"] for one in findings if one["type"] == "extra_forbidden")
        return tuple(_path(within, path) for path in strange)
    return ()


def _path(within: str, path: tuple[int | str, ...]) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join((within, *steps)).lstrip(".")


def _problem(finding: ErrorDetails) -> str:
    match finding["type"]:
        case "missing":
            return "is missing; add it"
        case "extra_forbidden":
            return "there is no such field; remove it or correct its name"
        case "json_invalid":
            return f"is not JSON ({finding['ctx']['error']})"
        case _:
            text = finding["msg"].removeprefix("Value error, ")
            return f"{text[0].lower()}{text[1:]}, not {finding['input']!r:.60}"
