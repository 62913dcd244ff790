"""Edge: the last accepted assignment, kept on the node for when the API server is away."""

import json
import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import ValidationError

from numapin_api.conditions import Reason
from numapin_api.nodeassignment import NodeAssignmentSpec

SCHEMA_VERSION: Final = 1
FILE_NAME: Final = "assignment.json"


@dataclass(frozen=True, slots=True)
class Assignment:
    """One node's spec as it stood in the API server: which object, which generation."""

    node_name: str
    uid: str
    generation: int
    spec: NodeAssignmentSpec


class LocalCopyError(Exception):
    """The kept assignment cannot be used; what is in force stays so until the API server speaks."""

    reason: ClassVar[Reason] = Reason.INVALID_LOCAL_COPY

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"the kept assignment {path} is not used: {problem}; the next one from the API server "
            "replaces it"
        )
        self.path, self.problem = path, problem


class LocalCopy:
    """One file in a folder of the node; written whole or not at all."""

    def __init__(self, state_dir: Path, node_name: str) -> None:
        self._path = state_dir / FILE_NAME
        self._node_name = node_name

    @property
    def path(self) -> Path:
        """Where the copy is kept."""
        return self._path

    def write(self, assignment: Assignment) -> None:
        """Replace the copy; after a power cut the old or the new one is there, whole.

        Raises:
            OSError: the folder cannot be written.
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
        fresh = self._path.with_suffix(".new")
        with fresh.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def read(self) -> Assignment | None:
        """The copy, or None when none was ever kept.

        Raises:
            LocalCopyError: it is damaged, another node's, or of another version of numapin.
        """
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LocalCopyError(self._path, error.strerror or str(error)) from error
        return self._parse(text)

    def remove(self) -> None:
        """Forget the copy, if there is one."""
        self._path.unlink(missing_ok=True)

    def _parse(self, text: bytes) -> Assignment:
        content = self._checked(text)
        if lacking := {"node", "uid", "generation", "spec"} - content.keys():
            problem = f"it is damaged (it lacks {', '.join(sorted(lacking))})"
            raise LocalCopyError(self._path, problem)
        if content["node"] != self._node_name:
            problem = f"it is of node {content['node']!r}, and this is {self._node_name!r}"
            raise LocalCopyError(self._path, problem)
        try:
            spec = NodeAssignmentSpec.model_validate(content["spec"])
        except ValidationError as error:
            raise LocalCopyError(self._path, f"its spec is wrong: {error}") from error
        return Assignment(self._node_name, content["uid"], content["generation"], spec)

    def _checked(self, text: bytes) -> dict[str, Any]:
        """The file's content, once version and checksum say that it is what we wrote."""
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
