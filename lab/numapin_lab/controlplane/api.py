"""A small synchronous client of the lab's own API server, for setting it up and looking at it."""

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from pathlib import Path
from typing import Any

from numapin_lab.errors import LabError

REQUEST_SECONDS = 30


class AnswerError(LabError):
    """The API server refused a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


@dataclass(frozen=True)
class ApiServer:
    """The address of the API server and the login."""

    url: str
    ca: Path
    token: str

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send one request and return the JSON answer, or the text if it is not JSON.

        Raises:
            AnswerError: any status from 400 on.
            OSError: the connection failed.
        """
        try:
            with self._open(method, path, body) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                raise AnswerError(error.code, error.read().decode(errors="replace")) from error
        return json.loads(text) if text[:1] in "{[" else text

    def headers(self, path: str) -> Message:
        """The headers of the answer to a GET, be it refused or not.

        Raises:
            OSError: the connection failed.
        """
        try:
            with self._open("GET", path) as answer:
                return answer.headers
        except urllib.error.HTTPError as error:
            with error:
                return error.headers

    def _open(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> http.client.HTTPResponse:
        data = None if body is None else json.dumps(body).encode()
        patch = "application/apply-patch+yaml"
        kind = patch if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        context = ssl.create_default_context(cafile=self.ca)
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        answer: http.client.HTTPResponse = opener.open(request, timeout=REQUEST_SECONDS)
        return answer

    def get(self, path: str) -> Any:
        """The object or list at `path`."""
        return self.request("GET", path)

    def exists(self, path: str) -> bool:
        """Whether an object exists at `path`."""
        try:
            self.get(path)
        except AnswerError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return False
            raise
        return True

    def create(self, path: str, body: Mapping[str, Any]) -> Any:
        """Create an object; an existing one is not changed."""
        try:
            return self.request("POST", path, body)
        except AnswerError as error:
            if error.status == HTTPStatus.CONFLICT:
                return None
            raise

    def ready(self) -> bool:
        """Whether it serves and all its start hooks have run."""
        try:
            return bool(self.get("/readyz") == "ok")
        except (OSError, AnswerError):
            return False
