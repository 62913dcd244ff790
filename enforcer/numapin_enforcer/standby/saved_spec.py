"""What must be enforced, by the copy of the assignment that the enforcer saved on the node."""

import logging
from typing import Final

from numapin_api.meta.modes import is_enforced
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_enforcer.assignment.copy_file import CopyFile, LocalCopyError
from numapin_enforcer.assignment.decode import InvalidSpecError, decode_spec

LOG: Final = logging.getLogger(__name__)


class SavedSpec:
    """The last accepted spec as the enforcer left it on the node; read again when it changed."""

    def __init__(self, copy: CopyFile) -> None:
        self._copy = copy
        self._seen: tuple[int, int] | None = None
        self._spec: NodeAssignmentSpec | None = None

    def spec(self) -> NodeAssignmentSpec | None:
        """What must be in force; None if nothing must, or the copy is not usable."""
        try:
            found = self._copy.path.stat()
        except FileNotFoundError:
            self._seen = self._spec = None
            return None
        seen = (found.st_ino, found.st_mtime_ns)
        if seen != self._seen:
            self._seen, self._spec = seen, self._read()
        return self._spec

    def _read(self) -> NodeAssignmentSpec | None:
        try:
            saved = self._copy.read()
            return self._parse(saved["spec"]) if saved is not None else None
        except LocalCopyError as error:
            LOG.warning("the local copy of the assignment is unusable", extra={"error": error})
            return None

    def _parse(self, wire: object) -> NodeAssignmentSpec | None:
        """A spec; None if it enforces nothing."""
        try:
            spec = decode_spec(wire)
        except InvalidSpecError as error:
            raise LocalCopyError(self._copy.path, f"its spec is wrong: {error}") from error
        return spec if is_enforced(spec.mode) and spec.pools is not None else None
