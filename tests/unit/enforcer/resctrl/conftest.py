from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.resctrl.files import Resctrl
from numapin_enforcer.resctrl.updater import Host
from support.fakes.kernels.resctrl import FakeResctrl


@pytest.fixture
def kernel() -> FakeResctrl:
    return FakeResctrl(CpuSet.parse("0-7"))


@pytest.fixture
def host(kernel: FakeResctrl, tmp_path: Path) -> Host:
    return Host(Resctrl(kernel), tmp_path, "boot")
