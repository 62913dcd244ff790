"""Talking to a virtual machine that stays up, with the other end played."""

import base64
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from numapin_lab.controlplane.servers import ControlPlane, ControlPlanePorts
from numapin_lab.errors import LabError
from numapin_lab.vm import guest_shell
from numapin_lab.vm.guest_shell import Answer, GuestShell
from numapin_lab.vm.kernel import Kernel
from numapin_lab.vm.node import take_over_authority
from numapin_lab.vm.node_files import PROGRAMS, NodeFiles, libraries
from numapin_lab.vm.qemu_monitor import Monitor
from numapin_lab.vm.snapshot import Snapshot

Play = Callable[[socket.socket], None]


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Callable[[Play], Path]]:
    """Starts a server that plays a part for its first connection; returns its socket."""
    path, threads = tmp_path / "socket", []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        server.settimeout(30)

        def begin(part: Play) -> Path:
            def run() -> None:
                connection, _ = server.accept()
                with connection:
                    part(connection)

            threads.append(threading.Thread(target=run))
            threads[-1].start()
            return path

        yield begin
        for thread in threads:
            thread.join(30)


def test_a_script_is_sent_and_only_its_own_output_comes_back(
    played: Callable[[Play], Path],
) -> None:
    def guest(connection: socket.socket) -> None:
        with connection.makefile("rb") as lines:
            lines.readline()
            name, script = lines.readline().split()
        assert base64.b64decode(script) == b"echo 1"
        for piece in (
            b"of one before\n",
            name + b" begins\none\n",
            b"two\n\n" + name,
            b" ended 3\n",
        ):
            connection.sendall(piece)

    assert GuestShell(played(guest)).run("echo 1") == Answer(3, "one\ntwo\n")


def test_a_line_that_stands_still_is_woken_by_an_empty_line(
    played: Callable[[Play], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest_shell, "NUDGE_SECONDS", 0.05)

    def guest(connection: socket.socket) -> None:
        with connection.makefile("rb") as lines:
            lines.readline()
            name, _ = lines.readline().split()
            assert lines.readline() == b"\n"
        connection.sendall(name + b" begins\n\n" + name + b" ended 0\n")

    assert GuestShell(played(guest)).run("true") == Answer(0, "")


def test_a_guest_that_does_not_answer_is_given_up(played: Callable[[Play], Path]) -> None:
    def guest(connection: socket.socket) -> None:
        while connection.recv(1000):
            pass

    assert not GuestShell(played(guest)).answers(0.2)


def test_a_guest_that_ends_is_not_waited_for(
    played: Callable[[Play], Path],
) -> None:
    def guest(connection: socket.socket) -> None:
        connection.recv(1000)

    path = played(guest)
    with pytest.raises(ConnectionResetError, match="the guest ended"):
        GuestShell(path).run("true")
    assert not GuestShell(path.with_name("nobody")).answers(2.0)


def _emulator(answer: object) -> Play:
    def part(connection: socket.socket) -> None:
        with connection.makefile("rw") as lines:
            print(json.dumps({"QMP": {}}), file=lines, flush=True)
            assert json.loads(lines.readline())["execute"] == "qmp_capabilities"
            print(json.dumps({"return": {}}), file=lines, flush=True)
            assert json.loads(lines.readline()) == {"execute": "cont", "arguments": {"a": 1}}
            print(json.dumps({"event": "RESUME"}), file=lines, flush=True)
            if answer is not None:
                print(json.dumps(answer), file=lines, flush=True)

    return part


def test_the_monitor_returns_what_the_emulator_answers(played: Callable[[Play], Path]) -> None:
    monitor = Monitor(played(_emulator({"return": {"status": "running"}})))
    assert monitor("cont", a=1) == {"status": "running"}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param({"error": {"desc": "no such thing"}}, "no such thing", id="refused"),
        pytest.param(None, "the emulator ended", id="ended"),
    ],
)
def test_the_monitor_reports_what_went_wrong(
    answer: object, message: str, played: Callable[[Play], Path]
) -> None:
    with pytest.raises(LabError, match=f"QEMU does not cont: {message}"):
        Monitor(played(_emulator(answer)))("cont", a=1)


def test_shared_libraries_are_found_by_the_paths_a_program_wants(tmp_path: Path) -> None:
    assert [path for path in libraries(Path("/bin/ls")) if "libc.so" in path.name]
    assert list(libraries(tmp_path)) == []


def test_a_cluster_takes_over_the_snapshots_authority_and_no_other(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path / "lab", ControlPlanePorts(0, 0, 0), {})
    first, second = (
        Snapshot(tmp_path / name, Kernel(tmp_path, tmp_path)) for name in ("first", "second")
    )
    for snapshot in (first, second):
        snapshot.authority.create()
    take_over_authority(first, plane)
    take_over_authority(first, plane)
    assert plane.ca.read_bytes() == first.authority.certificate.read_bytes()
    assert (plane.authority.folder / "ca.key").stat().st_mode & 0o777 == 0o600
    with pytest.raises(LabError, match="another snapshot: take it down"):
        take_over_authority(second, plane)


def test_the_nodes_own_files_are_complete() -> None:
    written = NodeFiles({}).written()
    assert "SystemdCgroup = false" in written["etc/containerd.toml"]
    assert "cgroupDriver: cgroupfs" in written["etc/kubernetes/kubelet.yaml"]
    assert "{" not in written["sbin/start-containerd"] + written["sbin/start-kubelet"]


def test_a_node_with_systemd_has_its_units_and_its_driver() -> None:
    files = NodeFiles({name: Path("/bin/sh") for name in PROGRAMS}, systemd=True)
    written, sources = files.written(), files.sources()
    assert "SystemdCgroup = true" in written["etc/containerd.toml"]
    assert "cgroupDriver: systemd" in written["etc/kubernetes/kubelet.yaml"]
    assert "exec /lib/systemd/systemd " in written["sbin/agent"]
    for service in ("containerd", "dbus", "kubelet", "shell@"):
        assert "{" not in written[f"etc/systemd/system/{service}.service"]
    names = {file.name for file in sources}
    assert {"systemd", "systemctl", "dbus-daemon", "runc", "libc.so.6"} <= names
