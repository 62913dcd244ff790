"""A few nodes at a time, and no further one after a node has failed."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

Work = Callable[[str], Awaitable[str]]
"""Releases a node; returns why it could not, empty if it could."""


@dataclass(slots=True)
class Stages:
    """What became of each node.

    Attributes:
        nodes: all that are to be released.
        done: those that were.
        failed: why others were not.
    """

    nodes: Sequence[str]
    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def left(self) -> list[str]:
        """The nodes that are not released, in their order."""
        done = set(self.done)
        return [name for name in self.nodes if name not in done]

    async def carry_out(
        self, work: Work, at_once: int, ended: Callable[["Stages", str], None]
    ) -> None:
        """Work on each node.

        Args:
            work: releases one.
            at_once: how many at the same time, at least 1.
            ended: called with the name of each node when its work has ended.

        Raises:
            Exception: what `work` raises; the others are cancelled.
        """
        queue = iter(self.nodes)
        async with asyncio.TaskGroup() as tasks:
            for number in range(min(at_once, len(self.nodes))):
                tasks.create_task(self._work(queue, work, ended), name=f"release-{number}")

    async def _work(
        self, queue: Iterator[str], work: Work, ended: Callable[["Stages", str], None]
    ) -> None:
        while not self.failed and (name := next(queue, None)) is not None:
            if why := await work(name):
                self.failed[name] = why
            else:
                self.done.append(name)
            ended(self, name)
