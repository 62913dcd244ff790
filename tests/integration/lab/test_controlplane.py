"""The control plane alone: etcd and kube-apiserver as the lab starts them."""

import base64
import json
import ssl
import urllib.request
from pathlib import Path

import pytest

from numapin_lab.controlplane.api import AnswerError, ApiServer
from numapin_lab.controlplane.servers import ControlPlane, ControlPlanePorts
from numapin_lab.errors import LabError
from numapin_lab.processes.daemons import kill
from numapin_lab.processes.ports import choose


def test_the_default_service_account_is_there(control_plane: ControlPlane) -> None:
    accounts = control_plane.kubectl.get("serviceaccounts", "--namespace=default")
    assert [account["metadata"]["name"] for account in accounts["items"]] == ["default"]


def test_the_server_certificate_is_signed_by_the_labs_authority(
    control_plane: ControlPlane,
) -> None:
    context = ssl.create_default_context(cafile=control_plane.ca)
    with urllib.request.urlopen(f"{control_plane.server}/version", context=context) as answer:
        assert json.load(answer)["major"] == "1"


def test_a_wrong_token_is_refused(control_plane: ControlPlane) -> None:
    stranger = ApiServer(control_plane.server, control_plane.ca, "wrong")
    with pytest.raises(AnswerError) as refused:
        stranger.get("/api/v1/nodes")
    assert refused.value.status == 401


def test_service_account_tokens_can_be_requested(control_plane: ControlPlane) -> None:
    token = control_plane.kubectl("create", "token", "default").strip()
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert claims["sub"] == "system:serviceaccount:default:default"


def test_kubectl_says_what_went_wrong(control_plane: ControlPlane) -> None:
    with pytest.raises(LabError, match='configmaps "none" not found'):
        control_plane.kubectl("get", "configmap", "none")


@pytest.fixture
def own_plane(control_plane: ControlPlane, tmp_path: Path) -> ControlPlane:
    return ControlPlane(tmp_path, ControlPlanePorts(*choose(3)), control_plane.programs)


def test_start_brings_back_just_what_was_killed(own_plane: ControlPlane) -> None:
    try:
        own_plane.start()
        own_plane.kubectl("create", "configmap", "kept")
        etcd, apiserver = own_plane.etcd.pid(), own_plane.apiserver.pid()
        assert apiserver is not None
        kill(apiserver)
        own_plane.start()
        assert own_plane.etcd.pid() == etcd
        assert own_plane.apiserver.pid() not in (None, apiserver)
        own_plane.kubectl("get", "configmap", "kept")
    finally:
        own_plane.stop()
    assert (own_plane.etcd.pid(), own_plane.apiserver.pid()) == (None, None)
