"""The file of the local copy: one JSON object with a checksum, replaced as a whole."""

import json
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Final

from numapin_api.conditions.reasons import Reason
from numapin_daemon import atomic_file

SCHEMA_VERSION: Final = 1
FILE_NAME: Final = "assignment.json"

MOST_BYTES: Final = 16 * 1024 * 1024
"""An object of the API server has 1.5 MiB at most; indented, it takes a few times as much."""


class LocalCopyError(Exception):
    """The copy cannot be used; nothing is enforced until the API server answers."""

    reason: ClassVar[Reason] = Reason.INVALID_LOCAL_COPY

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"the local copy {path} of the assignment is not used: {problem}; the next assignment "
            "from the API server replaces it"
        )
        self.path, self.problem = path, problem


class CopyFile:
    """The fields `node`, `uid`, `generation` and `spec`, the latter as the API server has it."""

    def __init__(self, state_dir: Path, node_name: str) -> None:
        self.path = state_dir / FILE_NAME
        self._node_name = node_name

    def write(self, fields: dict[str, Any]) -> None:
        """Replace the file; after a power cut there is the old one or the new one.

        Raises:
            OSError: the file could not be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        content = {"schemaVersion": SCHEMA_VERSION} | fields
        text = json.dumps(content | {"sha256": _checksum(content)}, indent=1)
        atomic_file.replace(self.path, text.encode())

    def read(self) -> dict[str, Any] | None:
        """The fields, of which only the checksum was checked, or None if there is no file.

        Raises:
            LocalCopyError: it is damaged, or of another node or version of numapin.
        """
        try:
            text = atomic_file.read(self.path, most_bytes=MOST_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LocalCopyError(self.path, error.strerror or str(error)) from error
        try:
            content = self._checked(text)
        except RecursionError as error:
            raise LocalCopyError(self.path, "it is damaged (nested too deeply)") from error
        if lacking := {"node", "uid", "generation", "spec"} - content.keys():
            problem = f"it is damaged (it lacks {', '.join(sorted(lacking))})"
            raise LocalCopyError(self.path, problem)
        if content["node"] != self._node_name:
            problem = f"it is of node {content['node']!r}, and this node is {self._node_name!r}"
            raise LocalCopyError(self.path, problem)
        return content

    def _checked(self, text: bytes) -> dict[str, Any]:
        """The file's content, after a check of its version and checksum."""
        try:
            content = json.loads(text)
        except ValueError as error:
            raise LocalCopyError(self.path, f"it is damaged ({error})") from error
        if not isinstance(content, dict):
            raise LocalCopyError(self.path, "it is damaged (not an object)")
        found = content.get("schemaVersion")
        if found != SCHEMA_VERSION:
            problem = f"it has schema version {found!r}, and this numapin reads {SCHEMA_VERSION}"
            raise LocalCopyError(self.path, problem)
        if content.pop("sha256", None) != _checksum(content):
            raise LocalCopyError(self.path, "it is damaged (the checksum does not match)")
        return content


def _checksum(content: dict[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    digest: str = _sha256(canonical.encode()).hexdigest()
    return digest


def _find_sha256() -> Callable[[bytes], Any]:
    """`hashlib.sha256`, or the same function without OpenSSL, which takes 3.5 MiB of memory.

    The modules with it have no documented names. Source: the standard library's `random` finds
    `sha512` in the same way.
    """
    for name in ("_sha2", "_sha256"):  # Python 3.12 and later, and 3.11
        with suppress(ImportError):
            found: Callable[[bytes], Any] = import_module(name).sha256
            return found
    from hashlib import sha256  # noqa: PLC0415

    return sha256


_sha256: Final = _find_sha256()
