"""What a daemon says if the packages of its extra are not installed."""

import subprocess
import sys

import pytest

START = """\
import sys
import runpy
_, program, missing = sys.argv
class Missing:
    def find_spec(self, name, *_):
        if name == missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
sys.argv[1:] = ["--version"]
runpy.run_module(program, run_name="__main__", alter_sys=True)
"""


def start_without(module: str, program: str) -> subprocess.CompletedProcess[str]:
    """Start a program where an import of `module` finds nothing."""
    command = [sys.executable, "-c", START, program, module]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("program", "module", "says"),
    [
        ("operator", "kopf", "numapin-operator: needs kopf: pip install 'numapin[operator]'"),
        ("enforcer", "grpclib", "numapin-enforcer: needs grpclib: pip install 'numapin[enforcer]'"),
        ("enforcer", "google", "numapin-enforcer: needs protobuf: pip install 'numapin[enforcer]'"),
        (
            "enforcer",
            "google.protobuf",
            "numapin-enforcer: needs protobuf: pip install 'numapin[enforcer]'",
        ),
    ],
)
def test_a_daemon_without_its_extra_says_what_to_install(
    program: str, module: str, says: str
) -> None:
    done = start_without(module, f"numapin_{program}")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{says}\n")


@pytest.mark.parametrize(
    ("program", "module"),
    [
        ("numapin_operator", "numapin_operator.observe.policy_source.kopf_source"),
        ("numapin_operator", "kopf._core"),
        ("numapin_enforcer", "grpclib.client"),
        ("numapin_enforcer", "h2"),
    ],
)
def test_any_other_import_error_is_shown_with_its_traceback(program: str, module: str) -> None:
    done = start_without(module, program)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback ")
    assert f"No module named '{module}'" in done.stderr


def test_the_standby_needs_no_extra() -> None:
    done = start_without("grpclib", "numapin_enforcer.standby")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("numapin")
