"""The committed messages of CRI and NRI are what their .proto files say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from numapin_enforcer.runtime.generated import cri_v1_pb2 as pb

ENFORCER = Path(__file__).parents[4] / "enforcer"
PACKAGE = ENFORCER / "numapin_enforcer/runtime/generated"
GENERATED = {
    "cri_v1": ("cri_v1_pb2.py", "cri_v1_pb2.pyi", "cri_v1_grpc.py"),
    "nri_v1alpha1": ("nri_v1alpha1_pb2.py", "nri_v1alpha1_pb2.pyi"),
}

FIELD_NUMBERS = [
    ("LinuxContainerResources", "cpuset_cpus", 6),
    ("LinuxContainerResources", "cpuset_mems", 7),
    ("LinuxContainerResources", "cpu_quota", 2),
    ("UpdateContainerResourcesRequest", "linux", 2),
    ("Container", "metadata", 3),
    ("Container", "state", 6),
    ("ContainerFilter", "pod_sandbox_id", 3),
    ("ContainerEventResponse", "containers_statuses", 5),
    ("ContainerStatus", "resources", 16),
    ("ContainerConfig", "linux", 15),
    ("PodSandboxConfig", "linux", 8),
]


@pytest.fixture(scope="module")
def regenerated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("proto")
    plugins = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{ENFORCER}"]
    command += [f"--python_out={out}", f"--mypy_out=quiet:{out}"]
    for name, files in GENERATED.items():
        stubs = [f"--grpclib_python_out={out}"] if f"{name}_grpc.py" in files else []
        source = f"numapin_enforcer/runtime/generated/{name}.proto"
        environment = os.environ | {"PATH": plugins}
        subprocess.run([*command, *stubs, source], check=True, env=environment)
    return out / "numapin_enforcer/runtime/generated"


@pytest.mark.parametrize("name", [one for files in GENERATED.values() for one in files])
def test_the_committed_code_is_what_make_proto_writes(regenerated: Path, name: str) -> None:
    assert _content(PACKAGE / name) == _content(regenerated / name)


@pytest.mark.parametrize(("message", "field", "number"), FIELD_NUMBERS)
def test_field_numbers_are_those_of_cri_api(message: str, field: str, number: int) -> None:
    assert getattr(pb, message).DESCRIPTOR.fields_by_name[field].number == number


def _content(path: Path) -> list[str]:
    """The lines that do not depend on which release of the compiler wrote them."""
    text = path.read_text().split("_runtime_version.ValidateProtobufRuntimeVersion(")
    tail = [part.partition(")\n")[2] for part in text[1:]]
    lines = "".join([text[0], *tail]).splitlines()
    return [line for line in lines if "Protobuf Python Version" not in line]
