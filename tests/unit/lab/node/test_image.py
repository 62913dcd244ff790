"""Files that the lab writes for others to read."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from numapin_api.cpuset import CpuSet
from numapin_lab.__main__ import main
from numapin_lab.controlplane import kubeconfig
from numapin_lab.controlplane.certificates import Authority, Identity
from numapin_lab.controlplane.installation import MANIFESTS, without_workloads
from numapin_lab.errors import LabError
from numapin_lab.lifecycle import LabFolder
from numapin_lab.node import image
from numapin_lab.node.cgroups import LabCgroup
from numapin_lab.node.container_cpus import ContainerView, container_names, read_containers
from numapin_lab.state import LabState


def members(archive: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {member.name: member for member in tar.getmembers()}


def content(archive: bytes, name: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        file = tar.extractfile(name)
        assert file is not None
        return file.read()


def test_the_image_holds_busybox_under_each_of_its_names() -> None:
    layer = image.root_file_system(b"program", ["busybox", "sh", "taskset"])
    found = members(layer)
    assert content(layer, "bin/busybox") == b"program"
    assert found["bin/busybox"].mode == 0o755
    assert found["bin/sh"].linkname == found["bin/taskset"].linkname == "busybox"
    assert found["tmp"].mode == 0o1777


def test_the_image_is_a_consistent_oci_layout() -> None:
    archive = image.archive(image.root_file_system(b"program", ["sh"]), "x86_64")
    blobs = {
        "sha256:" + name.rpartition("/")[2]: content(archive, name)
        for name in members(archive)
        if name.startswith("blobs/")
    }
    for digest, blob in blobs.items():
        assert digest == "sha256:" + hashlib.sha256(blob).hexdigest()
    index = json.loads(content(archive, "index.json"))
    manifest = json.loads(blobs[index["manifests"][0]["digest"]])
    config = json.loads(blobs[manifest["config"]["digest"]])
    assert index["manifests"][0]["annotations"] == {"io.containerd.image.name": image.IMAGE}
    assert config["architecture"] == "amd64"
    assert config["rootfs"]["diff_ids"] == [layer["digest"] for layer in manifest["layers"]]


def test_equal_inputs_give_the_same_image() -> None:
    layer = image.root_file_system(b"program", ["sh"])
    assert image.archive(layer, "aarch64") == image.archive(layer, "aarch64")


def test_a_kubeconfig_names_one_user_of_one_cluster(tmp_path: Path) -> None:
    path = kubeconfig.write(tmp_path / "k", "https://x:1", Path("/ca"), {"tokenFile": "/token"})
    assert path.stat().st_mode & 0o777 == 0o600
    found = yaml.safe_load(path.read_text())
    assert found["current-context"] == found["contexts"][0]["name"]
    assert found["users"][0]["user"] == {"tokenFile": "/token"}
    assert found["clusters"][0]["cluster"] == {
        "server": "https://x:1",
        "certificate-authority": "/ca",
    }


def test_certificates_speak_for_a_user_and_its_groups(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.create()
    identity = Identity("system:node:lab", ("system:nodes",), ("127.0.0.1", "localhost"))
    path, key = authority.issue("kubelet", identity)
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    ca = x509.load_pem_x509_certificate(authority.certificate.read_bytes())
    certificate.verify_directly_issued_by(ca)
    subject = {field.oid: field.value for field in certificate.subject}
    assert subject == {
        NameOID.COMMON_NAME: "system:node:lab",
        NameOID.ORGANIZATION_NAME: "system:nodes",
    }
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert key.stat().st_mode & 0o777 == 0o600
    assert isinstance(ca.public_key(), ec.EllipticCurvePublicKey)


def test_what_was_issued_stays(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.create()
    first = authority.issue("kubelet", Identity("a"))[0].read_bytes()
    authority.create()
    assert authority.issue("kubelet", Identity("a"))[0].read_bytes() == first


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
def test_a_file_that_holds_no_settings_of_a_kubelet_is_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kubelet.yaml"
    file.write_text(text)
    lab = str(tmp_path / "lab")
    assert main(["up", "--kubelet-config", str(file), "--dir", lab]) == 1
    assert f"lab: {file} " in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[]", '{"id": "x"}', '{"id": "x", "node": "n", "ports": {}}'])
def test_a_state_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    path.write_text(text)
    with pytest.raises(LabError, match="is not the state of a lab"):
        LabState.read(path)


def test_the_manifests_are_installed_but_for_their_pods() -> None:
    documents: list[dict[str, Any]] = [
        document
        for file in sorted(MANIFESTS.glob("*.yaml"))
        if file.name != "kustomization.yaml"
        for document in yaml.safe_load_all(file.read_text())
    ]
    kept = {document["kind"] for document in without_workloads(documents)}
    assert {document["kind"] for document in documents} - kept == {"Deployment", "DaemonSet"}
    assert {"ServiceAccount", "ClusterRole", "ValidatingAdmissionPolicy"} <= kept


POD = {
    "metadata": {"uid": "u-1", "namespace": "default", "name": "web"},
    "status": {
        "initContainerStatuses": [{"name": "prepare", "containerID": "containerd://1111"}],
        "containerStatuses": [
            {"name": "main", "containerID": "containerd://2222"},
            {"name": "waiting"},
        ],
    },
}


def test_containers_are_named_by_the_pods_status() -> None:
    assert container_names([POD, {"metadata": {}}]) == {"1111": "prepare", "2222": "main"}


@pytest.mark.parametrize("effective", ["cpuset.effective_cpus", "cpuset.cpus.effective"])
def test_every_cgroup_of_a_pod_is_seen(
    effective: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "cgroup"
    for name, cpus in (("2222", "1\n"), ("9999", "0-1\n")):
        folder = root / "kubepods" / "burstable" / "podu-1" / name
        folder.mkdir(parents=True)
        (folder / effective).write_text(cpus)
        (folder / "cgroup.procs").write_text("")
    (root / "cpuset.cpus").write_text("")
    monkeypatch.setattr(LabCgroup, "folders", lambda _: [tmp_path / "freezer", root])
    assert read_containers(LabCgroup("x"), [POD]) == [
        ContainerView("u-1", "default", "web", "(sandbox)", CpuSet.parse("0-1"), {}),
        ContainerView("u-1", "default", "web", "main", CpuSet.parse("1"), {}),
    ]
