"""The last accepted assignment, saved on the node for restarts without the API server."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from numapin_api.conditions.reasons import Obstacle, Reason, internal_error
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_daemon.worker import Worker
from numapin_enforcer.assignment.copy_file import CopyFile, LocalCopyError
from numapin_enforcer.assignment.decode import InvalidSpecError, decode_spec

PATIENCE_SECONDS: Final = 0.5
"""How long a status waits for the copy: most disks need milliseconds, and a status less then."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A spec as the API server had it, with its node, object and generation."""

    node_name: str
    uid: str
    generation: int
    spec: NodeAssignmentSpec


class LocalCopy:
    """One file in a folder of the node, replaced as a whole."""

    def __init__(self, state_dir: Path, node_name: str) -> None:
        self._file = CopyFile(state_dir, node_name)

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    def write(self, assignment: Assignment) -> None:
        """Replace the copy; after a power cut there is the old one or the new one.

        Raises:
            OSError: the file could not be written.
        """
        self._file.write(
            {
                "node": assignment.node_name,
                "uid": assignment.uid,
                "generation": assignment.generation,
                "spec": assignment.spec.to_wire(),
            }
        )

    def read(self) -> Assignment | None:
        """The copy, or None if there is none.

        Raises:
            LocalCopyError: it is damaged, or of another node or version of numapin.
        """
        content = self._file.read()
        if content is None:
            return None
        try:
            spec = decode_spec(content["spec"])
        except InvalidSpecError as error:
            raise LocalCopyError(self.path, f"its spec is wrong: {error}") from error
        uid, generation = content["uid"], content["generation"]
        if not isinstance(uid, str) or not isinstance(generation, int):
            raise LocalCopyError(self.path, "it is damaged (uid or generation is of another kind)")
        return Assignment(content["node"], uid, generation, spec)


class LocalCopyWriter:
    """Saves the newest assignment in the background: a disk may be slow."""

    def __init__(
        self,
        copy: LocalCopy,
        saved: Assignment | None,
        wake: asyncio.Event,
        clock: Clock | None = None,
    ) -> None:
        """Args: `saved` is what the copy holds; `wake` is set when it or the problem changes."""
        self._copy, self._wake, self._clock = copy, wake, clock or SystemClock()
        self._saved = self._newest = saved
        self._behind_since_seconds: float | None = None
        """Since when the copy is older than the newest assignment; None while it is not."""
        self._worker = Worker(
            "local-copy",
            self._save,
            expected=(OSError,),
            failure="the local copy could not be written, it will be retried",
            wake=wake.set,
            backoff=Backoff(base_seconds=1.0, cap_seconds=60.0),
            clock=self._clock,
        )

    @property
    def problem(self) -> str:
        """Why the copy is out of date; empty if it is not, or is being written."""
        error = self._worker.problem
        if error is None:
            return ""
        text = str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        return f"the assignment could not be saved in {self._copy.path}: {text}"

    @property
    def restart_spec(self) -> NodeAssignmentSpec | None:
        """The spec that a restart would load now; None once the newest one is on disk."""
        if self._newest == self._saved:
            return None
        return self._saved.spec if self._saved is not None else NodeAssignmentSpec()

    @property
    def patience_seconds(self) -> float | None:
        """How long the status can wait for the copy; None if it must not wait."""
        if self._worker.problem is not None or self._behind_since_seconds is None:
            return None
        left = self._behind_since_seconds + PATIENCE_SECONDS - self._clock.monotonic()
        return left if left > 0 else None

    def obstacles(self) -> tuple[Obstacle, ...]:
        """What keeps the assignment from being saved: a disk that refuses, or a defect."""
        error = self._worker.problem
        if error is None:
            return ()
        if isinstance(error, OSError):
            message = f"{self.problem}; no new container is reported exclusive until it is saved"
            return (Obstacle(Reason.ASSIGNMENT_NOT_SAVED, message),)
        return (internal_error("saving the assignment", error),)

    def want(self, assignment: Assignment) -> None:
        """Save this assignment; returns at once."""
        if assignment != self._newest:
            self._newest = assignment
            if assignment == self._saved:
                self._behind_since_seconds = None
            elif self._behind_since_seconds is None:
                self._behind_since_seconds = self._clock.monotonic()
            self._worker.request()

    async def run(self) -> None:
        """Save what is wanted until cancelled; a failure is retried."""
        await self._worker.run()

    async def _save(self) -> None:
        newest = self._newest
        if newest is None or newest == self._saved:
            return
        await asyncio.to_thread(self._copy.write, newest)
        self._saved = newest
        if self._newest == newest:
            self._behind_since_seconds = None
        self._wake.set()
