"""`operator` is also a standard-library module: a package of that name would shadow it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCE_ROOTS = (
    "crds",
    "daemon",
    "client",
    "operator",
    "enforcer",
    "cli",
    "page",
    "lab",
    "campaigns",
    "benchmarks",
)


@pytest.mark.parametrize("root", SOURCE_ROOTS)
def test_a_source_root_holds_one_package_and_is_none(root: str) -> None:
    assert not (ROOT / root / "__init__.py").exists()
    packages = [path.parent.name for path in (ROOT / root).glob("*/__init__.py")]
    assert len(packages) == 1
    assert packages[0].startswith("numapin_")


def test_the_standard_operator_module_is_found_from_the_checkout() -> None:
    script = "import collections, operator; print(operator.__file__)"
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert Path(run.stdout.strip()).name == "operator.py"


@pytest.mark.parametrize(
    "package", ["numapin_api", "numapin_daemon", "numapin_client", "numapin_enforcer"]
)
def test_importing_the_light_packages_loads_neither_kopf_nor_kubernetes(package: str) -> None:
    """`credential_providers` is the one module that may load `kubernetes`."""
    script = f"""
import importlib, pkgutil, sys, {package}
for found in pkgutil.walk_packages({package}.__path__, "{package}."):
    if not found.name.endswith(("__main__", ".credential_providers")):
        importlib.import_module(found.name)
print([name for name in ("kopf", "kubernetes", "rich") if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_an_enforcer_in_a_pod_loads_only_what_it_needs() -> None:
    """Without OTLP and a kubeconfig. Each of these modules takes 0.3 to 19 MiB on every node."""
    script = """
import sys, numapin_enforcer.__main__
from numapin_enforcer.settings import parse_settings
parse_settings(["--node-name=n1"], {})
print(*sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(run.stdout.split()).isdisjoint(
        {
            "decimal",
            "fractions",
            "importlib.metadata",
            "jeepney",
            "kubernetes",
            "opentelemetry",
            "pydantic",
            "yaml",
            "zipfile",
        }
    )
