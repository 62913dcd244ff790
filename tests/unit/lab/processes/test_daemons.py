"""Starting, finding and ending processes."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from numapin_lab.errors import LabError
from numapin_lab.processes import daemons as processes
from numapin_lab.processes.daemons import Daemon, kill, marked, read_pid, stop, wait_until

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('deaf', flush=True); time.sleep(600)"
)


@pytest.fixture
def sleeper(tmp_path: Path) -> Daemon:
    return Daemon("sleeper", tmp_path / "sleeper", ("sleep", "600"), tmp_path)


def test_a_daemon_is_found_by_its_pid_file_and_its_mark(sleeper: Daemon, tmp_path: Path) -> None:
    pid = sleeper.start()
    assert sleeper.pid() == read_pid(sleeper.folder) == pid
    # The kernel lets `start` return before it has set up the environment of the new program.
    wait_until(lambda: list(marked(tmp_path)) == [pid], "the mark", 30, sleeper)
    assert os.getsid(pid) == pid
    stop(pid, grace_seconds=10)
    assert sleeper.pid() is None
    assert list(marked(tmp_path)) == []


def test_another_process_with_the_same_pid_is_not_the_daemon(sleeper: Daemon) -> None:
    sleeper.folder.mkdir()
    (sleeper.folder / "pid").write_text(f"{os.getpid()} 1\n")
    assert sleeper.pid() is None


@pytest.mark.parametrize("text", ["", "12", "x y"])
def test_a_spoiled_pid_file_means_not_running(text: str, sleeper: Daemon) -> None:
    sleeper.folder.mkdir()
    (sleeper.folder / "pid").write_text(text)
    assert sleeper.pid() is None


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    daemon = Daemon("deaf", tmp_path / "deaf", (sys.executable, "-c", STUBBORN), tmp_path)
    pid = daemon.start()
    wait_until(lambda: "deaf" in daemon.log.read_text(), "the handler", 30, daemon)
    stop(pid, grace_seconds=0.2)
    assert daemon.pid() is None


def test_stopping_a_process_that_is_gone_succeeds() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    stop(child.pid, grace_seconds=1)
    kill(child.pid)


def test_a_daemon_that_ends_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    command = ("sh", "-c", "echo cannot work; exit 1")
    daemon = Daemon("broken", tmp_path / "broken", command, tmp_path)
    daemon.start()
    with pytest.raises(LabError, match=r"broken ended while waiting for it(.|\n)*cannot work"):
        wait_until(lambda: False, "it", 30, daemon)


def test_waiting_ends() -> None:
    with pytest.raises(LabError, match="waited 0 s in vain for nothing"):
        wait_until(lambda: False, "nothing", 0)


def test_a_port_in_use_is_reported(sleeper: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PORT_SECONDS", 0)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        daemon = Daemon("d", sleeper.folder, sleeper.command, sleeper.lab, ports=(port,))
        with pytest.raises(LabError, match=f"port {port} of d"):
            daemon.start()
    assert daemon.pid() is None


def test_daemons_get_no_proxy_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://nowhere")
    monkeypatch.setenv("KUBECONFIG", "/theirs")
    daemon = Daemon("env", tmp_path / "env", ("env",), tmp_path)
    pid = daemon.start()
    os.waitpid(pid, 0)
    names = {line.partition("=")[0] for line in daemon.log.read_text().splitlines()}
    assert names <= {"PATH", "HOME", "LANG", "TMPDIR", processes.MARK}
