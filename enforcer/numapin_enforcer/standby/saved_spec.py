"""What must be enforced, by the copy of the assignment that the enforcer saved on the node."""

import logging
from typing import Final

from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_enforcer.assignment.local_copy import LocalCopy, LocalCopyError

LOG: Final = logging.getLogger(__name__)


class SavedSpec:
    """The last accepted spec as the enforcer left it on the node; read again when it changed."""

    def __init__(self, copy: LocalCopy) -> None:
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
        except LocalCopyError as error:
            LOG.warning("the local copy of the assignment is unusable", extra={"error": error})
            return None
        enforced = saved is not None and saved.spec.mode != "None" and saved.spec.pools is not None
        return saved.spec if saved is not None and enforced else None
