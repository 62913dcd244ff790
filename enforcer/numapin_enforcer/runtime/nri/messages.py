"""The messages of NRI: what the runtime asks, and what it is answered. Does no I/O."""

from dataclasses import dataclass
from typing import Any, Final, TypeVar

from google.protobuf.message import DecodeError, Message

from numapin_enforcer.runtime.generated import nri_v1alpha1_pb2 as pb
from numapin_enforcer.runtime.nri.frames import NriProtocolError
from numapin_enforcer.runtime.nri.values import NriContainer, RuntimeTimeouts, Sets

Read = TypeVar("Read", bound=Message)

PLUGIN_SERVICE: Final = "nri.pkg.api.v1alpha1.Plugin"
RUNTIME_SERVICE: Final = "nri.pkg.api.v1alpha1.Runtime"

EVENTS: Final = sum(1 << (event - 1) for event in (pb.CREATE_CONTAINER, pb.START_CONTAINER))
"""What the plug-in subscribes to. Source: nri, pkg/api/event.go, `EventMask`."""

UNIMPLEMENTED: Final = 12
"""Source: google.rpc.Code."""


@dataclass(frozen=True, slots=True)
class Request:
    """A call of the runtime."""

    service: str
    method: str
    payload: bytes


def read_request(payload: bytes) -> Request:
    """A call of the runtime.

    Raises:
        NriProtocolError: it cannot be read. So it is of each function here that reads.
    """
    read = _read(pb.TtrpcRequest(), payload)
    return Request(read.service, read.method, read.payload)


def read_response(payload: bytes) -> str:
    """Why the runtime refused a call; empty if it did not."""
    status = _read(pb.TtrpcResponse(), payload).status
    return (status.message or f"code {status.code}") if status.code else ""


def registration(name: str, index: str) -> bytes:
    """The call that registers the plug-in."""
    payload = pb.RegisterPluginRequest(plugin_name=name, plugin_idx=index).SerializeToString()
    call = pb.TtrpcRequest(service=RUNTIME_SERVICE, method="RegisterPlugin", payload=payload)
    return _bytes(call)


def answered(payload: bytes = b"") -> bytes:
    """The response to a call that succeeded."""
    return _bytes(pb.TtrpcResponse(status=pb.TtrpcStatus(), payload=payload))


def refused(code: int, message: str) -> bytes:
    """The response to a call that is not known here."""
    return _bytes(pb.TtrpcResponse(status=pb.TtrpcStatus(code=code, message=message)))


def read_configuration(payload: bytes) -> RuntimeTimeouts:
    """What the runtime says when it configures the plug-in."""
    read = _read(pb.ConfigureRequest(), payload)
    seconds = max(read.request_timeout, 0) / 1000
    return RuntimeTimeouts(read.runtime_name, read.runtime_version, seconds)


def subscription() -> bytes:
    """The events that the plug-in needs."""
    return _bytes(pb.ConfigureResponse(events=EVENTS))


def synchronized(payload: bytes) -> bytes:
    """The answer to a part of the list of all containers, which is not needed: go on."""
    more = _read(pb.SynchronizeRequest(), payload).more
    return _bytes(pb.SynchronizeResponse(more=more))


def read_container(payload: bytes) -> NriContainer:
    """The container of CreateContainer or StartContainer."""
    read = _read(pb.CreateContainerRequest(), payload)
    return _container(read.pod, read.container)


def read_start(payload: bytes) -> NriContainer | None:
    """The container of a StateChange, the form of StartContainer before NRI 0.12; None if other."""
    read = _read(pb.StateChangeEvent(), payload)
    return _container(read.pod, read.container) if read.event == pb.START_CONTAINER else None


def adjustment(sets: Sets | None) -> bytes:
    """The answer to CreateContainer; None leaves the container as it is."""
    if sets is None:
        return b""
    cpu = pb.LinuxCPU(cpus=str(sets.cpus), mems=str(sets.mems))
    linux = pb.LinuxContainerAdjustment(resources=pb.LinuxResources(cpu=cpu))
    return _bytes(pb.CreateContainerResponse(adjust=pb.ContainerAdjustment(linux=linux)))


def _container(pod: pb.PodSandbox, one: pb.Container) -> NriContainer:
    cpu = one.linux.resources.cpu
    return NriContainer(
        id=one.id,
        name=one.name,
        pod_uid=pod.uid,
        namespace=pod.namespace,
        pod=pod.name,
        labels=dict(pod.labels),
        cgroup_parent=pod.linux.cgroup_parent,
        cpu_shares=cpu.shares.value,
        quota_us=max(cpu.quota.value, 0),
        period_us=cpu.period.value,
        cpus=cpu.cpus,
        mems=cpu.mems,
    )


def _read(message: Read, payload: bytes) -> Read:
    try:
        message.ParseFromString(payload)
    except (DecodeError, ValueError) as error:
        name = type(message).__name__
        raise NriProtocolError(f"a {name} cannot be read ({type(error).__name__})") from error
    return message


def _bytes(message: Any) -> bytes:
    made: bytes = message.SerializeToString()
    return made
