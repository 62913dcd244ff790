"""What a runtime says over NRI, and what it cannot say."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.runtime.generated import nri_v1alpha1_pb2 as pb
from numapin_enforcer.runtime.nri import messages, values
from numapin_enforcer.runtime.nri.frames import NriProtocolError
from support.fakes.nri_runtime import UID, new_container

READERS: list[Callable[[bytes], object]] = [
    messages.read_request,
    messages.read_response,
    messages.read_configuration,
    messages.synchronized,
    messages.read_container,
    messages.read_start,
]

FIELD_NUMBERS = [
    ("TtrpcRequest", "payload", 3),
    ("TtrpcResponse", "payload", 2),
    ("RegisterPluginRequest", "plugin_idx", 2),
    ("ConfigureRequest", "request_timeout", 5),
    ("ConfigureResponse", "events", 2),
    ("SynchronizeRequest", "more", 3),
    ("SynchronizeResponse", "more", 2),
    ("PodSandbox", "uid", 3),
    ("PodSandbox", "namespace", 4),
    ("PodSandbox", "labels", 5),
    ("PodSandbox", "linux", 8),
    ("LinuxPodSandbox", "cgroup_parent", 3),
    ("Container", "id", 1),
    ("Container", "name", 3),
    ("Container", "linux", 11),
    ("LinuxContainer", "resources", 3),
    ("LinuxResources", "cpu", 2),
    ("LinuxCPU", "shares", 1),
    ("LinuxCPU", "quota", 2),
    ("LinuxCPU", "period", 3),
    ("LinuxCPU", "cpus", 6),
    ("LinuxCPU", "mems", 7),
    ("CreateContainerResponse", "adjust", 1),
    ("ContainerAdjustment", "linux", 6),
    ("LinuxContainerAdjustment", "resources", 2),
    ("StateChangeEvent", "container", 3),
]


@pytest.mark.parametrize(("message", "field", "number"), FIELD_NUMBERS)
def test_field_numbers_are_those_of_nri(message: str, field: str, number: int) -> None:
    assert getattr(pb, message).DESCRIPTOR.fields_by_name[field].number == number


def test_a_container_is_read() -> None:
    request = new_container("main", labels={"app": "x"}, cgroup_parent="/kubepods/podX")
    read = messages.read_container(request.SerializeToString())
    assert read == values.NriContainer(
        id="a" * 64,
        name="main",
        pod_uid=UID,
        namespace="default",
        pod="pod",
        labels={"app": "x"},
        cgroup_parent="/kubepods/podX",
        cpu_shares=1024,
        quota_us=100_000,
        period_us=100_000,
    )


def test_no_limit_is_no_limit() -> None:
    request = new_container(quota_us=-1).SerializeToString()
    assert messages.read_container(request).quota_us == 0


def test_only_starts_are_read_of_other_events() -> None:
    one = new_container()
    event = pb.StateChangeEvent(event=pb.START_CONTAINER, pod=one.pod, container=one.container)
    started = messages.read_start(event.SerializeToString())
    assert started == messages.read_container(one.SerializeToString())
    event = pb.StateChangeEvent(event=pb.UNKNOWN, pod=one.pod)
    assert messages.read_start(event.SerializeToString()) is None


def test_creations_and_starts_are_subscribed_to() -> None:
    assert pb.ConfigureResponse.FromString(messages.subscription()).events == 0b101000


def test_only_sets_are_answered() -> None:
    sets = values.Sets(CpuSet.parse("1,3"), MemSet.parse("0"))
    made = pb.CreateContainerResponse.FromString(messages.adjustment(sets))
    cpu = pb.LinuxCPU(cpus="1,3", mems="0")
    linux = pb.LinuxContainerAdjustment(resources=pb.LinuxResources(cpu=cpu))
    assert made == pb.CreateContainerResponse(adjust=pb.ContainerAdjustment(linux=linux))
    assert messages.adjustment(None) == b""


def test_a_refusal_has_a_reason() -> None:
    assert messages.read_response(messages.answered()) == ""
    assert messages.read_response(messages.refused(12, "no")) == "no"
    assert messages.read_response(messages.refused(12, "")) == "code 12"


@pytest.mark.parametrize("read", READERS)
@given(data=st.binary(max_size=60))
def test_any_bytes_are_a_message_or_an_error(read: Callable[[bytes], object], data: bytes) -> None:
    with suppress(NriProtocolError):
        read(data)


@pytest.mark.parametrize("read", READERS)
def test_a_cut_message_is_an_error(read: Callable[[bytes], object]) -> None:
    with pytest.raises(NriProtocolError):
        read(b"\x0a\x7f")
