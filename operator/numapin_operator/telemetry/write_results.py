"""What follows from a write of a NodeAssignment that failed. Does no I/O."""

from typing import Final

from numapin_client.errors import (
    AlreadyExistsError,
    ClientError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)

STALE: Final = (AlreadyExistsError, ConflictError, NotFoundError)

PERMANENT: Final = (InvalidError, ForbiddenError)
"""Refusals that a person must see: the CRDs or the permissions are not those of this operator."""


def result_of(error: ClientError) -> str:
    """What a failed write counts as."""
    if isinstance(error, STALE):
        return "stale"
    return "refused" if isinstance(error, PERMANENT) else "failed"
