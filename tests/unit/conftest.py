"""What the unit tests share: the captured machines, unpacked once, and a clock."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from numapin_lab.played.machines import captured_names, unpack
from support.fakes.manual_clock import ManualClock

# A busy machine is not a failure: neither a deadline nor the time to draw examples counts.
settings.register_profile("unit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "fuzz",
    settings.get_profile("unit"),
    max_examples=int(os.environ.get("NUMAPIN_TEST_EXAMPLES", "100")),
    derandomize=False,
    database=None,
)
settings.load_profile("fuzz" if "NUMAPIN_TEST_EXAMPLES" in os.environ else "unit")

# Examples of derandomized properties would change with every constant in any module that is loaded:
# a test would fail in one selection of tests and pass in another.
NO_CONSTANTS = Constants()
pytest.MonkeyPatch().setattr(providers, "_get_local_constants", lambda: NO_CONSTANTS)

MACHINES = captured_names()


@pytest.fixture(scope="session")
def captured_machines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one folder for each captured machine, which has its `sys` and `proc`."""
    target = tmp_path_factory.mktemp("machines")
    for name in MACHINES:
        unpack(name, target)
    return target


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `captured_machine` is run once for each captured machine's name."""
    if "captured_machine" in metafunc.fixturenames:
        metafunc.parametrize("captured_machine", MACHINES)
