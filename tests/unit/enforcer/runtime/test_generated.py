"""The committed messages of runtimes and of the kubelet are what their .proto files say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from numapin_enforcer.runtime.generated import cri_v1_pb2 as pb

ROOT = Path(__file__).parents[4]
PACKAGE = "enforcer/numapin_enforcer/runtime/generated"
MESSAGES, CALLS = ("_pb2.py", "_pb2.pyi"), ("_pb2.py", "_pb2.pyi", "_grpc.py")
GENERATED = {
    f"{PACKAGE}/cri_v1": CALLS,
    f"{PACKAGE}/podresources_v1": CALLS,
    f"{PACKAGE}/nri_v1alpha1": MESSAGES,
    "lab/numapin_lab/devices/generated/deviceplugin_v1beta1": CALLS,
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
    for name, ends in GENERATED.items():
        root, _, source = f"{name}.proto".partition("/")
        (out / root).mkdir(exist_ok=True)
        kinds = ("python_out=", "mypy_out=quiet:", *(["grpclib_python_out="] * (ends is CALLS)))
        writers = [f"--{kind}{out / root}" for kind in kinds]
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / root}", *writers, source]
        subprocess.run(command, check=True, env=os.environ | {"PATH": plugins})
    return out


@pytest.mark.parametrize("name", [f"{one}{end}" for one, ends in GENERATED.items() for end in ends])
def test_the_committed_code_is_what_make_proto_writes(regenerated: Path, name: str) -> None:
    assert _content(ROOT / name) == _content(regenerated / name)


@pytest.mark.parametrize(("message", "field", "number"), FIELD_NUMBERS)
def test_field_numbers_are_those_of_cri_api(message: str, field: str, number: int) -> None:
    assert getattr(pb, message).DESCRIPTOR.fields_by_name[field].number == number


def _content(path: Path) -> list[str]:
    """The lines that do not depend on which release of the compiler wrote them."""
    text = path.read_text().split("_runtime_version.ValidateProtobufRuntimeVersion(")
    tail = [part.partition(")\n")[2] for part in text[1:]]
    lines = "".join([text[0], *tail]).splitlines()
    return [line for line in lines if "Protobuf Python Version" not in line]
