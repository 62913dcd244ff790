"""The kubelet's own answers, of which a client of ours gets the most part unchanged."""

from pathlib import Path
from typing import TypeVar

from google.protobuf.message import DecodeError, Message
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from numapin_enforcer.podresources.client import CALL_TIMEOUT_SECONDS, PodResourcesClient
from numapin_enforcer.podresources.interface import PodResourcesError
from numapin_enforcer.runtime.generated import podresources_v1_pb2 as pb

_Answer = TypeVar("_Answer", bound=Message)


class Kubelet:
    """A kubelet behind its podresources socket.

    Raises:
        GRPCError: the kubelet's own error; or UNAVAILABLE if it does not answer in time, or with
            what cannot be used.
    """

    def __init__(self, socket: Path, call_seconds: float = CALL_TIMEOUT_SECONDS) -> None:
        self._socket, self._call_seconds = socket, call_seconds

    async def pods(self) -> pb.ListPodResourcesResponse:
        """The pods of the node with their devices."""
        request, answer = pb.ListPodResourcesRequest(), pb.ListPodResourcesResponse
        return await self._call("List", request, answer)

    async def pod(self, request: pb.GetPodResourcesRequest) -> pb.GetPodResourcesResponse:
        """One pod with its devices."""
        return await self._call("Get", request, pb.GetPodResourcesResponse)

    async def allocatable(self) -> pb.AllocatableResourcesResponse:
        """The devices of the node, used or not."""
        request, answer = pb.AllocatableResourcesRequest(), pb.AllocatableResourcesResponse
        return await self._call("GetAllocatableResources", request, answer)

    async def _call(self, name: str, request: Message, answer: type[_Answer]) -> _Answer:
        try:
            async with PodResourcesClient(self._socket, self._call_seconds) as kubelet:
                return answer.FromString(await kubelet.call(getattr(kubelet.stub, name), request))
        except PodResourcesError as error:
            if isinstance(error.__cause__, GRPCError):
                raise error.__cause__ from None
            raise GRPCError(Status.UNAVAILABLE, str(error)) from error
        except DecodeError as error:
            problem = f"the kubelet's answer on {self._socket} cannot be read: {error}"
            raise GRPCError(Status.UNAVAILABLE, problem) from error
