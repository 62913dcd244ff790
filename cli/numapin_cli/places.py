"""Places: where in a document something is wrong, and what, from pydantic's findings."""

from pydantic import ValidationError


def describe_invalid(refused: ValidationError) -> tuple[str, str]:
    """The place of the first finding, such as `topology.policy`, and what to do about it."""
    first = refused.errors()[0]
    place = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"])
    match first["type"]:
        case "extra_forbidden":
            problem = "there is no such field; remove it or correct its name"
        case "missing":
            problem = "is missing; add it"
        case _:
            text = first["msg"].removeprefix("Value error, ")
            problem = f"{text[0].lower()}{text[1:]}, not {first['input']!r:.60}"
    return place.lstrip("."), problem
