"""What the unit tests share: the captured machines, unpacked once, and a clock."""

import tarfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from support.fakes.manual_clock import ManualClock

# A busy machine is not a failure: neither a deadline nor the time to draw examples counts.
settings.register_profile("unit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unit")

# Examples of derandomized properties would change with every constant in any module that is loaded:
# a test would fail in one selection of tests and pass in another.
NO_CONSTANTS = Constants()
pytest.MonkeyPatch().setattr(providers, "_get_local_constants", lambda: NO_CONSTANTS)

_CAPTURED = Path(__file__).parents[1] / "machines"
MACHINES = sorted(path.name.removesuffix(".tar.xz") for path in _CAPTURED.glob("*.tar.xz"))


@pytest.fixture(scope="session")
def captured_machines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one folder for each captured machine, which has its `sys` and `proc`."""
    target = tmp_path_factory.mktemp("machines")
    for name in MACHINES:
        with tarfile.open(_CAPTURED / f"{name}.tar.xz") as archive:
            # Python 3.11.3 and older do not know filters, 3.12 warns without one.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(target)
    return target


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `captured_machine` is run once for each captured machine's name."""
    if "captured_machine" in metafunc.fixturenames:
        metafunc.parametrize("captured_machine", MACHINES)
