"""The files of a machine whose kubelet has the static policy."""

from pathlib import Path

import pytest

from support.fakes.worlds.static_kubelet import state, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of one machine with two pods, and the kubelet's state."""
    write(tmp_path)
    (tmp_path / "cpu_manager_state").write_text(state())
    return tmp_path
