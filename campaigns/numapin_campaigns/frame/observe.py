"""Look at a cluster while a campaign goes on, also while its API server is away."""

import http.client
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from http import HTTPStatus
from typing import ClassVar, Final, Self, TypeVar

from numapin_lab.controlplane.api import AnswerError
from numapin_lab.errors import LabError

PATIENCE_SECONDS: Final = 300.0
PODS: Final = "/api/v1/namespaces/default/pods"
AWAY: Final = (OSError, http.client.HTTPException, ValueError)
"""Errors of a client while the API server ends, is down, or starts."""

_TEMPORARY: Final = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS})
_T = TypeVar("_T")


def until_answered(call: Callable[[], _T], missing: _T) -> _T:
    """Repeat a call until the API server answers; return `missing` for 404.

    While it starts, the API server refuses requests that roles it has not read yet will allow.

    Raises:
        LabError: the request is refused, or was not answered for `PATIENCE_SECONDS`.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return call()
        except AnswerError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return missing
            passing = error.status in _TEMPORARY or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
            if not passing or time.monotonic() > deadline:
                raise
        except AWAY as error:
            if time.monotonic() > deadline:
                raise LabError(f"the API server does not answer: {error}") from error
        time.sleep(0.1)


class Observer(ABC):
    """Looks now and then; `with` it, in a thread."""

    poll_seconds: ClassVar[float] = 0.2

    def __init__(self, name: str) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @abstractmethod
    def look(self) -> None:
        """Look once."""

    def _run(self) -> None:
        while not self._over.wait(self.poll_seconds):
            self.look()
