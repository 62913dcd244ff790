"""The API server that a command asks, and what failed in words for people."""

import asyncio
import os
import re
from argparse import Namespace
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from numapin_api.names import API_VERSION
from numapin_cli.subcommand import CommandError
from numapin_client.client import ApiClient, connect
from numapin_client.errors import (
    ClientError,
    ForbiddenError,
    LoginError,
    NotFoundError,
    UnauthorizedError,
)
from numapin_client.login.find import find_login

T = TypeVar("T")

USER_AGENT: Final = "numapin-cli"

_RIGHT: Final = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>[a-z]+) resource "(?P<resource>[^"]+)"'
    r' in API group "(?P<group>[^"]*)"(?: in the namespace "(?P<namespace>[^"]+)")?'
)
"""Source: Kubernetes, apiserver, `responsewriters.forbiddenMessage`."""

_NO_SUCH_RESOURCE: Final = "could not find the requested resource"
"""Source: Kubernetes, apimachinery, `errors.NewGenericServerResponse`."""


def ask_server(options: Namespace, work: Callable[[ApiClient], Awaitable[T]]) -> T:
    """Run `work` with a client of the API server that the flags name.

    Raises:
        CommandError: there is none, it refuses, or something is not there.
    """

    async def run() -> T:
        login = find_login(options.kubeconfig, os.environ, options.context)
        async with connect(login, user_agent=USER_AGENT) as client:
            return await work(client)

    try:
        return asyncio.run(run())
    except ClientError as error:
        raise CommandError(said(error)) from error


def said(error: ClientError) -> str:
    """What failed, and what to do about it."""
    match error:
        case LoginError():
            return str(error).replace("name a kubeconfig", "name a kubeconfig with --kubeconfig")
        case UnauthorizedError():
            return f"{error.request}: the API server does not accept your login; log in again"
        case ForbiddenError() if found := _RIGHT.search(error.message):
            return _missing_right(found)
        case NotFoundError() if is_unknown_resource(error):
            return (
                f"{error.request}: this API server does not serve {API_VERSION}; beside an older"
                " numapin, apply the CRDs of this version first (docs/upgrading.md), else install"
                " numapin there (README.md, Install it on your cluster), or choose another cluster"
                " with --context"
            )
        case _:
            return str(error)


def is_unknown_resource(error: NotFoundError) -> bool:
    """Whether the server lacks the resource as such: its CRD is not installed.

    It answers with a plain text if it does not know the group, and with a Status otherwise.
    """
    return not error.status_reason or _NO_SUCH_RESOURCE in error.message


def _missing_right(found: re.Match[str]) -> str:
    resource = ".".join(filter(None, (found["resource"], found["group"])))
    where = f"-n {found['namespace']}" if found["namespace"] else "--all-namespaces"
    place = f"in namespace {found['namespace']}" if found["namespace"] else "in the whole cluster"
    return (
        f"{found['user']} may not {found['verb']} {resource} {place}; ask for a role that allows it"
        f" (kubectl auth can-i {found['verb']} {resource} {where})"
    )
