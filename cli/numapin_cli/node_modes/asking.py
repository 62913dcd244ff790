"""Release a node by what is written in the API server: its enforcer gives everything back."""

import asyncio
import sys
import time
from contextlib import suppress
from typing import Final

from numapin_api.names import RELEASED
from numapin_cli.live.node_parts import NodeParts
from numapin_cli.live.node_state import NodeState
from numapin_cli.live.reader import Reader
from numapin_cli.node_modes.marks import set_mode
from numapin_cli.node_modes.steps import (
    Step,
    Waited,
    due_at,
    next_step,
    state_of,
    why_stuck,
)
from numapin_client.errors import (
    ConflictError,
    ConnectionFailedError,
    ForbiddenError,
    NotFoundError,
    TooManyRequestsError,
    UnavailableError,
)
from numapin_client.resources import (
    NODE_ASSIGNMENTS,
    NODE_REPORTS,
    NODE_TOPOLOGIES,
    Key,
)
from numapin_operator.observe.assignments.view import AssignmentView

PAUSE_SECONDS: Final = 2.0
"""Between two looks at a node."""

MOST_WRITES: Final = 4
"""Writes to the assignment of a node; who needs more has somebody who writes against them."""

_UNANSWERED: Final = (ConnectionFailedError, TooManyRequestsError, UnavailableError)
_BY_POD: Final = "if none is to run there any more: numapin release --node {node} --pods"


class Asking:
    """Releases nodes whose enforcers run, with an operator or without one."""

    def __init__(self, reader: Reader, timeout_seconds: float) -> None:
        """Args: `timeout_seconds` is how long nothing may change on a node before it has failed."""
        self._reader, self._timeout_seconds = reader, timeout_seconds
        self._parts = NodeParts(reader)

    async def release(self, node: str) -> str:
        """Release one node; returns why it is not released, empty if it is."""
        try:
            await set_mode(self._reader.client, node, RELEASED)
        except NotFoundError:
            # Nothing runs on a machine that is gone. If it comes back, its enforcer releases it.
            await forget(self._reader, node)
            return ""
        if stuck := await self._follow(node):
            return f"{why_stuck(stuck)}; {_BY_POD.format(node=node)}"
        return ""

    async def _follow(self, node: str) -> AssignmentView | None:
        """Wait until a node is released, and write what the operator does not.

        Returns:
            The assignment on which nothing changes any more; None if the node is released.
        """
        since, before, written = time.monotonic(), None, 0
        while (seen := await self._read(node)) is not None:
            if (state := state_of(seen)) != before:
                since, before = time.monotonic(), state
                _say_when(node, seen)
            waited = Waited(time.monotonic() - since, time.time())
            step = next_step(seen, waited)
            if step is Step.WAIT:
                if waited.seconds > self._timeout_seconds and not _is_due(seen):
                    return seen
                await asyncio.sleep(PAUSE_SECONDS)
            elif written == MOST_WRITES:
                return seen
            else:
                written += 1
                await self._write(step, seen)
        return None

    async def _read(self, node: str) -> AssignmentView | None:
        """The assignment of a node; an API server that does not answer is asked again."""
        until = time.monotonic() + self._timeout_seconds
        while True:
            try:
                found = await self._parts.one(node)
            except _UNANSWERED:
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                return NodeState.decode(found.content).view if found is not None else None

    async def _write(self, step: Step, seen: AssignmentView) -> None:
        """Make the write that the operator has not made; none if somebody has written meanwhile."""
        with suppress(ConflictError, NotFoundError):
            if step is Step.DELETE:
                await forget(self._reader, seen.name, seen)
            else:
                await self._give_up(seen)

    async def _give_up(self, seen: AssignmentView) -> None:
        """Write what the operator writes when no policy selects the node any more."""
        client, key = self._reader.client, Key(seen.name)
        body = await client.get(NODE_ASSIGNMENTS, key)
        if body["metadata"]["generation"] != seen.generation:
            return
        gone = dict.fromkeys(body["spec"])
        version = {"resourceVersion": body["metadata"]["resourceVersion"]}
        patch = {"metadata": version, "spec": gone | {"mode": "None"}}
        await client.merge_patch(NODE_ASSIGNMENTS, key, patch)


async def forget(reader: Reader, node: str, seen: AssignmentView | None = None) -> None:
    """Delete the NodeAssignment of a node, and what its enforcer has reported.

    Raises:
        ConflictError: it is not the one that was seen.
    """
    version = str(seen.version) if seen else ""
    for resource in (NODE_ASSIGNMENTS, NODE_REPORTS, NODE_TOPOLOGIES):
        is_first = resource is NODE_ASSIGNMENTS
        try:
            await reader.client.delete(
                resource, Key(node), resource_version=version if is_first else ""
            )
        except NotFoundError:
            continue
        except ForbiddenError:
            if is_first:
                raise


def _is_due(seen: AssignmentView) -> bool:
    """Whether the operator has announced a time that has not come."""
    due = due_at(seen)
    return due is not None and time.time() < due


def _say_when(node: str, seen: AssignmentView) -> None:
    if seen.spec.release_at is not None:
        text = f"node/{node}: its CPUs are given back at {seen.spec.release_at} (releaseDelay)"
        print(text, file=sys.stderr, flush=True)
