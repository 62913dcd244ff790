"""Errors that are kept for a report. Does no I/O."""

from typing import TypeVar

E = TypeVar("E", bound=BaseException)


def without_frames(error: E) -> E:
    """The same error without its traceback, causes and contexts, which must be logged before.

    The frames of a failed connection refer to themselves. A search for such cycles frees them while
    they are young; an error that is kept until the next attempt makes them old, and the operator
    searches nothing that is old.
    """
    error.__traceback__ = error.__cause__ = error.__context__ = None
    return error
