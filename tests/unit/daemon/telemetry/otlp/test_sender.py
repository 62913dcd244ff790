"""The standard settings of OTLP, seen by a receiver on the loopback."""

import gzip
import ssl
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from numapin_daemon.telemetry.otlp.sender import OtlpSender
from numapin_daemon.telemetry.otlp.settings import METRICS, TRACES, OtlpError, otlp_settings
from numapin_lab.controlplane.certificates import Authority, Identity

BODY = b"a message " * 50


class Receiver(ThreadingHTTPServer):
    """Answers with the next of `statuses`, then with 200; keeps path, headers and body."""

    def __init__(self, *statuses: int, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.statuses, self.got = list(statuses), list[tuple[str, dict[str, str], bytes]]()
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.origin = f"{'https' if tls else 'http'}://127.0.0.1:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        found = {name.lower(): value for name, value in self.headers.items()}
        self.server.got.append((self.path, found, body))
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Retry-After", "1")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def receiving(*statuses: int, tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    with Receiver(*statuses, tls=tls) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign] # clients that hang up
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def sender(origin: str, **more: str) -> OtlpSender:
    prefix = "OTEL_EXPORTER_OTLP_"
    environment = {f"{prefix}{name}": value for name, value in more.items()}
    return OtlpSender(otlp_settings({f"{prefix}ENDPOINT": origin, **environment}, METRICS))


@pytest.mark.parametrize(
    ("name", "expand"), [("none", bytes), ("gzip", gzip.decompress), ("deflate", zlib.decompress)]
)
def test_a_message_arrives_with_path_headers_and_compression(
    name: str, expand: Callable[[bytes], bytes]
) -> None:
    with receiving() as server:
        more = {"HEADERS": "api-key=a%20secret, X-Scope=1=2", "COMPRESSION": name}
        assert sender(server.origin, **more).send(BODY)
    ((path, headers, body),) = server.got
    assert (path, expand(body)) == ("/v1/metrics", BODY)
    assert headers["content-type"] == "application/x-protobuf"
    assert (headers["api-key"], headers["x-scope"]) == ("a secret", "1=2")
    assert headers.get("content-encoding", "none") == name


def test_the_signals_own_endpoint_is_used_as_it_is() -> None:
    with receiving() as server:
        assert sender("http://nowhere", METRICS_ENDPOINT=f"{server.origin}/mine").send(BODY)
    assert [path for path, _, _ in server.got] == ["/mine"]


@pytest.mark.parametrize(
    ("status", "attempts", "accepted"),
    [(503, 2, True), (429, 2, True), (400, 1, False), (500, 1, False), (307, 1, False)],
)
def test_only_what_may_pass_is_tried_again(status: int, attempts: int, *, accepted: bool) -> None:
    with receiving(status) as server:
        assert sender(server.origin, TIMEOUT="60000").send(BODY) is accepted
    assert len(server.got) == attempts


def test_the_timeout_ends_the_attempts(caplog: pytest.LogCaptureFixture) -> None:
    with receiving(*[503] * 9) as server:
        one = sender(server.origin, TIMEOUT="900")
        assert [one.send(BODY), one.send(BODY)] == [False, False]
        assert len(server.got) == 2
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert vars(caplog.records[0])["why"] == "503 Service Unavailable"


def test_stop_ends_the_waiting() -> None:
    with receiving(*[503] * 9) as server:
        one = sender(server.origin, TIMEOUT="600000")
        one.stop()
        assert not one.send(BODY)
        assert len(server.got) == 1


def test_tls_with_an_authority_and_a_client_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.create()
    for name in ("server", "client"):
        authority.issue(name, Identity(name, hosts=("127.0.0.1",)))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    tls.load_verify_locations(authority.certificate)
    tls.verify_mode = ssl.CERT_REQUIRED
    own = {
        "CLIENT_CERTIFICATE": str(tmp_path / "client.crt"),
        "CLIENT_KEY": str(tmp_path / "client.key"),
    }
    trusted = {"CERTIFICATE": str(authority.certificate)}
    with receiving(tls=tls) as server:
        assert sender(server.origin, **trusted, **own).send(BODY)
        assert not sender(server.origin, **own).send(BODY)  # the system does not trust the lab
        assert not sender(server.origin, **trusted, TIMEOUT="500").send(BODY)
    assert len(server.got) == 1


@pytest.mark.parametrize("setting", ["CERTIFICATE", "CLIENT_CERTIFICATE"])
def test_a_certificate_that_cannot_be_read_is_named(setting: str, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.crt")
    with pytest.raises(OtlpError, match=f"{missing} cannot be loaded"):
        sender("https://127.0.0.1:4318", **{setting: missing})


def test_both_signals_load_the_same_certificates_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    authority.create()
    made, make = list[str | None](), ssl.create_default_context

    def counted(*, cafile: str | None) -> ssl.SSLContext:
        made.append(cafile)
        return make(cafile=cafile)

    monkeypatch.setattr(ssl, "create_default_context", counted)
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "https://127.0.0.1:4318",
        "OTEL_EXPORTER_OTLP_CERTIFICATE": str(authority.certificate),
    }
    for signal in (METRICS, TRACES):
        OtlpSender(otlp_settings(environment, signal))
    assert made == [str(authority.certificate)]
