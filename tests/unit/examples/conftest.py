"""A volume that the examples follow."""

from pathlib import Path

import pytest

from support.real.telling.downward_volume import DownwardVolume


@pytest.fixture
def volume(tmp_path: Path) -> DownwardVolume:
    return DownwardVolume(tmp_path / "volume")
