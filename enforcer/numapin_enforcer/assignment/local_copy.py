"""The last accepted assignment, saved on the node for restarts without the API server."""

import asyncio
import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import ValidationError

from numapin_api.conditions import Obstacle, Reason, internal_error
from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_daemon import atomic_file
from numapin_daemon.backoff import Backoff
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.worker import Worker

SCHEMA_VERSION: Final = 1
FILE_NAME: Final = "assignment.json"

MOST_BYTES: Final = 16 * 1024 * 1024
"""An object of the API server has 1.5 MiB at most; indented, it takes a few times as much."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A spec as the API server had it, with its node, object and generation."""

    node_name: str
    uid: str
    generation: int
    spec: NodeAssignmentSpec


class LocalCopyError(Exception):
    """The copy cannot be used; nothing is enforced until the API server answers."""

    reason: ClassVar[Reason] = Reason.INVALID_LOCAL_COPY

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"the local copy {path} of the assignment is not used: {problem}; the next assignment "
            "from the API server replaces it"
        )
        self.path, self.problem = path, problem


class LocalCopy:
    """One file in a folder of the node, replaced as a whole."""

    def __init__(self, state_dir: Path, node_name: str) -> None:
        self._path = state_dir / FILE_NAME
        self._node_name = node_name

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def write(self, assignment: Assignment) -> None:
        """Replace the copy; after a power cut there is the old one or the new one.

        Raises:
            OSError: the file could not be written.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "schemaVersion": SCHEMA_VERSION,
            "node": assignment.node_name,
            "uid": assignment.uid,
            "generation": assignment.generation,
            "spec": assignment.spec.to_wire(),
        }
        text = json.dumps(content | {"sha256": _checksum(content)}, indent=1)
        atomic_file.replace(self._path, text.encode())

    def read(self) -> Assignment | None:
        """The copy, or None if there is none.

        Raises:
            LocalCopyError: it is damaged, or of another node or version of numapin.
        """
        try:
            text = atomic_file.read(self._path, most_bytes=MOST_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LocalCopyError(self._path, error.strerror or str(error)) from error
        try:
            return self._parse(text)
        except RecursionError as error:
            raise LocalCopyError(self._path, "it is damaged (nested too deeply)") from error

    def _parse(self, text: bytes) -> Assignment:
        content = self._checked(text)
        if lacking := {"node", "uid", "generation", "spec"} - content.keys():
            problem = f"it is damaged (it lacks {', '.join(sorted(lacking))})"
            raise LocalCopyError(self._path, problem)
        if content["node"] != self._node_name:
            problem = f"it is of node {content['node']!r}, and this node is {self._node_name!r}"
            raise LocalCopyError(self._path, problem)
        try:
            spec = NodeAssignmentSpec.model_validate(content["spec"])
        except ValidationError as error:
            raise LocalCopyError(self._path, f"its spec is wrong: {error}") from error
        return Assignment(self._node_name, content["uid"], content["generation"], spec)

    def _checked(self, text: bytes) -> dict[str, Any]:
        """The file's content, after a check of its version and checksum."""
        try:
            content = json.loads(text)
        except ValueError as error:
            raise LocalCopyError(self._path, f"it is damaged ({error})") from error
        if not isinstance(content, dict):
            raise LocalCopyError(self._path, "it is damaged (not an object)")
        found = content.get("schemaVersion")
        if found != SCHEMA_VERSION:
            problem = f"it has schema version {found!r}, and this numapin reads {SCHEMA_VERSION}"
            raise LocalCopyError(self._path, problem)
        if content.pop("sha256", None) != _checksum(content):
            raise LocalCopyError(self._path, "it is damaged (the checksum does not match)")
        return content


def _checksum(content: dict[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return sha256(canonical.encode()).hexdigest()


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
        self._copy, self._wake = copy, wake
        self._saved = self._newest = saved
        self._worker = Worker(
            "local-copy",
            self._save,
            expected=(OSError,),
            failure="the local copy could not be written, it will be retried",
            wake=wake.set,
            backoff=Backoff(base_seconds=1.0, cap_seconds=60.0),
            clock=clock or SystemClock(),
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
        self._wake.set()
