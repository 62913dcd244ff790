"""Answers of an API server that says no, or does not speak to the point."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp import web

from numapin_client.resources import Json


@dataclass(frozen=True)
class Answer:
    """What to answer instead of the truth; nothing at all when `stall` is set."""

    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    stall: bool = False


def status(code: int, reason: str, message: str) -> Json:
    """Say no as the API server does."""
    return {"kind": "Status", "code": code, "reason": reason, "message": message}


def gone() -> Answer:
    """Say that a continue token has expired."""
    return Answer(410, body=json.dumps(status(410, "Expired", "too old")).encode())


def refusal(code: int, reason: str, message: str) -> web.Response:
    """Answer with a Status object."""
    return web.json_response(status(code, reason, message), status=code)


def denial(right: str, where: dict[str, str]) -> str:
    """Source: Kubernetes, apiserver, `responsewriters.forbiddenMessage`."""
    verb, _, resource = right.partition(" ")
    place = f'in the namespace "{where["namespace"]}"' if where["namespace"] else _EVERYWHERE
    named = f' "{where["name"]}"' if where["name"] else ""
    return (
        f'{_full_name(where)}{named} is forbidden: User "tester" cannot {verb}'
        f' resource "{resource}" in API group "{where["group"]}" {place}'
    )


_EVERYWHERE = "at the cluster scope"


def not_found(where: dict[str, str]) -> str:
    """Source: Kubernetes, apimachinery, `errors.NewNotFound`."""
    return f'{_full_name(where)} "{where["name"]}" not found'


def _full_name(where: dict[str, str]) -> str:
    return ".".join(filter(None, (where["plural"], where["group"])))
