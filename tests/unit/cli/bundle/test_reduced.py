"""What a report keeps of objects and of command lines, and what it masks."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_cli.bundle.own_pods import MASK, masked, masked_arguments
from numapin_cli.bundle.reduced import reduced
from numapin_operator.observe.pods.parser import parse_stored_pod
from numapin_operator.observe.records import NodeView
from numapin_operator.observe.resource_slices import DeviceId, PublishedDevices
from support.fakes.worlds.described_cluster import node_body
from support.values.leaking import CANARY, leaking
from support.values.operator import pod_body


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(0, 9) | st.just(CANARY),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(
                    ["resources", "requests", "cpu", "env", "state", "terminated", "name"]
                ),
                inner,
                max_size=3,
            )
        ),
        max_leaves=8,
    )
)
def test_no_form_of_a_pod_is_too_odd_to_be_reduced(odd: Any) -> None:
    for place in ("containers", "resources", "initContainers"):
        body = pod_body("p", "2")
        body["spec"][place] = odd
        found = reduced("Pod", body)
        assert parse_stored_pod(found).name == "p"
    status = pod_body("p", "2") | {"status": {"containerStatuses": odd, "conditions": odd}}
    assert reduced("Pod", status)["metadata"]["name"] == "p"


@pytest.mark.parametrize("cpu", ["2", "500m"])
def test_the_operator_sees_no_difference(cpu: str) -> None:
    body = leaking(pod_body("p", cpu, labels={"a": "b"}, owner=("ReplicaSet", "u"), priority=7))
    body["spec"] |= {"runtimeClassName": "kata", "overhead": {"cpu": "1"}}
    body["spec"]["resources"] = {"requests": {"cpu": "3"}}
    body["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "uid-static"
    assert parse_stored_pod(reduced("Pod", body)) == parse_stored_pod(body)
    node = node_body("n", "7500m")
    node["status"]["nodeInfo"] = {"operatingSystem": "linux", "machineID": CANARY}
    node["status"]["addresses"] = [{"address": CANARY}]
    assert NodeView.decode(reduced("Node", node)) == NodeView.decode(node)
    assert CANARY not in json.dumps([reduced("Node", node), reduced("Pod", body)])


def test_the_operator_sees_no_difference_in_a_slice() -> None:
    standard = {
        "resource.kubernetes.io/numaNode": {"int": 1},
        "resource.kubernetes.io/pciBusID": {"string": "0000:3b:00.0"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:3a"},
        "numaNode": {"int": 0},
    }
    device = {"name": "g", "attributes": standard | {"uuid": {"string": CANARY}}, "taints": CANARY}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d", "nodeName": "n", "pool": pool, "devices": [device], "other": CANARY}
    body = {"metadata": {"name": "s"}, "spec": spec}
    wanted = DeviceId("d", "p", "g")
    whole, less = PublishedDevices([wanted]), PublishedDevices([wanted])
    whole.take_in(body)
    less.take_in(reduced("ResourceSlice", body))
    assert less.places == whole.places
    assert len(less.places[wanted]) == 4
    assert CANARY not in json.dumps(reduced("ResourceSlice", body))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abcdefghij.k", f"Authorization: Bearer {MASK}"),
        ("https://user:pass@host/x", f"https://{MASK}@host/x"),
        ('{"token":"abc","x":1}', f'{{"token":"{MASK}","x":1}}'),
        ("eyJhbGciOiJSUzI1.eyJpc3MiOiJr.sig-_x", MASK),
        ("wanted 4 CPUs, 2 free: 6-7", "wanted 4 CPUs, 2 free: 6-7"),
    ],
)
def test_what_looks_like_a_credential_is_masked(text: str, expected: str) -> None:
    assert masked(text) == expected


def test_values_of_flags_that_may_be_credentials_are_masked() -> None:
    given = ["--token", "abc", "--tls-key-file=/x", "--v=2", "--health", "x", "--auth-token=a=b"]
    expected = ["--token", MASK, f"--tls-key-file={MASK}", "--v=2", "--health", "x"]
    assert masked_arguments(given) == [*expected, f"--auth-token={MASK}"]
