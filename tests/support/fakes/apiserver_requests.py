"""What a request to an API server asks for: the resource, the right, and the objects it selects."""

import re
from collections.abc import Callable

from aiohttp import web

from numapin_client.resources import Json, Resource

_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?"
    r"(?:/(?P<subresource>status|log|proxy(?=/)))?(?P<page>(?<=/proxy)/.*)?"
)
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def where_of(path: str) -> dict[str, str] | None:
    """The parts of a path; None if it is not that of a resource."""
    matched = _PATH.fullmatch(path)
    return {name: text or "" for name, text in matched.groupdict().items()} if matched else None


def collection_of(where: dict[str, str]) -> str:
    """The path of all objects of the resource."""
    return Resource(where["group"], where["version"], where["plural"], "", True).collection_path()


def right_of(request: web.Request, where: dict[str, str]) -> str:
    """The verb and the resource of RBAC, such as `list pods` or `get pods/log`."""
    reading = "get" if where["name"] else "watch" if request.query.get("watch") else "list"
    resource = "/".join(filter(None, (where["plural"], where["subresource"])))
    return f"{_VERBS.get(request.method, reading)} {resource}"


def selection(request: web.Request, where: dict[str, str]) -> Callable[[Json], bool]:
    """Whether the selectors of a list or a watch match an object."""
    labels = dict(_pairs(request.query.get("labelSelector", "")))
    fields = _pairs(request.query.get("fieldSelector", ""))
    namespace = where["namespace"]

    def matches(body: Json) -> bool:
        metadata = body["metadata"]
        return (
            (not namespace or metadata.get("namespace") == namespace)
            and all(_has(body, field, value) for field, value in fields)
            and labels.items() <= metadata.get("labels", {}).items()
        )

    return matches


def _has(body: Json, field: str, value: str) -> bool:
    """`field=value`, or `field!=value`, which is parsed as a field that ends in `!`."""
    found: object = body
    for step in field.removesuffix("!").split("."):
        found = found.get(step, "") if isinstance(found, dict) else ""
    return (str(found) == value) is not field.endswith("!")


def _pairs(selector: str) -> list[tuple[str, str]]:
    return [
        (name, text) for name, _, text in (x.partition("=") for x in selector.split(",")) if name
    ]
