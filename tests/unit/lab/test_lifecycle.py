"""What a lab keeps in its folder, and what it refuses."""

from pathlib import Path

import pytest

from numapin_lab.__main__ import main
from numapin_lab.errors import LabError
from numapin_lab.lifecycle import LabFolder
from numapin_lab.state import LabState


def test_the_state_survives_a_restart_of_the_command(tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    assert LabState.read(path) is None
    state = LabState.new({"cpuManagerPolicy": "static"})
    state.write(path)
    assert LabState.read(path) == state
    assert LabState.new({}).name != state.name


def test_a_lab_that_is_up_keeps_its_kubelet_as_it_is(tmp_path: Path) -> None:
    LabState.new({"cpuManagerPolicy": "static"}).write(tmp_path / "lab.json")
    with pytest.raises(LabError, match="has other settings"):
        LabFolder(tmp_path).up(kubelet={"cpuManagerPolicy": "none"})


@pytest.mark.parametrize("text", ["", "not: [closed", "- cpuManagerPolicy"])
def test_a_file_without_kubelet_settings_is_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kubelet.yaml"
    file.write_text(text)
    lab = str(tmp_path / "lab")
    assert main(["up", "--kubelet-config", str(file), "--dir", lab]) == 1
    assert f"lab: {file} " in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[]", '{"id": "x"}', '{"id": "x", "node": "n", "ports": {}}'])
def test_a_file_that_is_no_state_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    path.write_text(text)
    with pytest.raises(LabError, match="is not the state of a lab"):
        LabState.read(path)


def test_systemd_without_a_virtual_machine_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--systemd", "--dir", str(tmp_path / "lab")]) == 1
    assert "--systemd needs --vm" in capsys.readouterr().err
    assert not (tmp_path / "lab").exists()
