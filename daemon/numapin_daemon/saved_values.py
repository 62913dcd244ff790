"""What was found on a node before it was changed, as JSON in a file that outlives the process."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from numapin_daemon import atomic_file

LOG: Final = logging.getLogger(__name__)

T = TypeVar("T")

_DAMAGED: Final = (
    OSError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    RecursionError,
)
"""What reading a file raises whose content is not what was saved."""


def read(
    path: Path, parse: Callable[[Any], dict[str, T]], *, most_bytes: int, damaged: str
) -> dict[str, T]:
    """What is saved; none if there is no file. Of a damaged one nothing can be restored.

    Args:
        path: the file.
        parse: makes values of the JSON; it may raise any error of wrong content.
        most_bytes: a larger file is damaged.
        damaged: what is logged of a file that is damaged, or cannot be read.
    """
    try:
        return parse(json.loads(atomic_file.read(path, most_bytes=most_bytes)))
    except FileNotFoundError:
        return {}
    except _DAMAGED as error:
        LOG.warning(damaged, extra={"file": path, "error": error})
        return {}


def save(path: Path, content: object) -> None:
    """Replace what is saved, and make the folder if it is missing.

    Raises:
        OSError: as of `atomic_file.replace`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_file.replace(path, json.dumps(content).encode())
