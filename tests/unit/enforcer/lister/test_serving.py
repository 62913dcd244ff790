"""The podresources API on a real socket, as a client of gRPC sees it."""

import asyncio
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from numapin_enforcer.lister.kubelet import Kubelet
from numapin_enforcer.lister.serving import LOOK_SECONDS, PodResourcesServer
from numapin_enforcer.lister.socket_file import SocketFileError, listening
from numapin_enforcer.podresources.client import MOST_BYTES
from numapin_enforcer.runtime.generated import podresources_v1_pb2 as pb
from support.fakes.kubelets.before_exporters import GPU, Scene, passed
from support.real.waiting import eventually, running


async def test_the_three_calls_have_what_is_in_force_beside_devices(scene: Scene) -> None:
    wanted = pb.ContainerResources(name="c", devices=[GPU], cpu_ids=[2, 3])
    assert await scene.lists() == wanted
    request = pb.GetPodResourcesRequest(pod_name="p", pod_namespace="d")
    found = await scene.client.Get(request)
    assert found.pod_resources == pb.PodResources(name="p", namespace="d", containers=[wanted])
    node = await scene.client.GetAllocatableResources(pb.AllocatableResourcesRequest())
    assert node == pb.AllocatableResourcesResponse(devices=[GPU], cpu_ids=range(1, 8))
    assert scene.kubelet.asked == ["List", "Get", "GetAllocatableResources"]


async def test_the_next_pass_is_the_next_answer(scene: Scene) -> None:
    assert (await scene.lists()).cpu_ids == [2, 3]
    scene.server.passed(*passed(scene.clock, "5"))
    assert (await scene.lists()).cpu_ids == [5]


@pytest.mark.parametrize(
    "failure",
    [
        GRPCError(Status.UNKNOWN, "pod x in namespace y not found"),
        GRPCError(Status.RESOURCE_EXHAUSTED, "rejected by rate limit"),
    ],
    ids=["no such pod", "too many calls"],
)
async def test_an_error_of_the_kubelet_is_passed_on(scene: Scene, failure: GRPCError) -> None:
    scene.kubelet.failure = failure
    with pytest.raises(GRPCError) as refused:
        await scene.client.Get(pb.GetPodResourcesRequest(pod_name="x", pod_namespace="y"))
    assert (refused.value.status, refused.value.message) == (failure.status, failure.message)


async def test_without_the_kubelet_there_is_no_answer(scene: Scene) -> None:
    scene.theirs.unlink()
    status, message = await scene.refusal()
    assert status is Status.UNAVAILABLE
    assert message.startswith(f"the kubelet does not list devices on {scene.theirs}: ")


async def test_a_silent_kubelet_is_not_waited_for(scene: Scene) -> None:
    scene.kubelet.may_answer.clear()
    kubelet = Kubelet(scene.theirs, call_seconds=0.05)
    with pytest.raises(GRPCError, match=r"no answer in 0\.05 s") as refused:
        await kubelet.pods()
    assert refused.value.status is Status.UNAVAILABLE


async def test_an_answer_that_is_too_long_is_not_read(scene: Scene) -> None:
    scene.kubelet.more_devices = 5000
    status, message = await scene.refusal()
    assert status is Status.UNAVAILABLE
    assert f"more than {MOST_BYTES}" in message


async def test_what_is_not_known_is_not_answered(scene: Scene) -> None:
    one, _ = passed(scene.clock)
    scene.server.passed(one, None)
    assert await scene.refusal() == (
        Status.UNAVAILABLE,
        "numapin has not read the cgroups of this node yet",
    )


async def test_what_is_old_is_not_answered(scene: Scene) -> None:
    await scene.clock.advance(61)
    assert await scene.refusal() == (
        Status.UNAVAILABLE,
        "numapin has read the cgroups of this node 61 s ago",
    )


async def test_a_request_that_is_none_is_refused(scene: Scene) -> None:
    request = pb.GetPodResourcesRequest(pod_name="p" * 2000, pod_namespace="d")
    with pytest.raises(GRPCError) as refused:
        await scene.client.Get(request)
    assert refused.value.status is Status.INVALID_ARGUMENT
    assert scene.kubelet.asked == []


async def test_calls_that_come_too_often_leave_the_kubelet_to_others(scene: Scene) -> None:
    answers = await asyncio.gather(*(scene.lists() for _ in range(40)), return_exceptions=True)
    refused = [one.status for one in answers if isinstance(one, GRPCError)]
    assert set(refused) == {Status.RESOURCE_EXHAUSTED}
    assert len(scene.kubelet.asked) == 40 - len(refused)
    await eventually(scene.answers)


async def test_only_root_may_ask(scene: Scene) -> None:
    assert stat.S_IMODE(scene.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(scene.path.parent.stat().st_mode) == 0o700
    assert [one.name for one in scene.path.parent.iterdir()] == [scene.path.name]


async def test_the_socket_is_made_again_when_it_is_gone(scene: Scene) -> None:
    scene.path.unlink()
    await scene.clock.advance(LOOK_SECONDS)
    await scene.begins()
    assert (await scene.lists()).cpu_ids == [2, 3]


async def test_the_socket_ends_with_the_enforcer(tmp_path: Path) -> None:
    made = Scene(tmp_path)
    async with running(made.server.run()) as task:
        await made.begins()
        task.cancel()
        await eventually(task.done)
        assert not made.path.exists()


def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "kubelet.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    with listening(path, 1), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    assert not path.exists()


@pytest.mark.parametrize(
    "prepare",
    [
        pytest.param(Path.touch, id="a file"),
        pytest.param(Path.mkdir, id="a folder"),
        pytest.param(lambda path: path.symlink_to("x"), id="a link"),
    ],
)
def test_a_file_of_others_stays(tmp_path: Path, prepare: Callable[[Path], object]) -> None:
    path = tmp_path / "kubelet.sock"
    prepare(path)
    before = path.lstat()
    with pytest.raises(SocketFileError, match="is no socket"), listening(path, 1):
        pass
    assert path.lstat().st_ino == before.st_ino
    assert not [one for one in tmp_path.iterdir() if one.name.startswith(".")]


def test_a_socket_that_another_program_serves_stays(tmp_path: Path) -> None:
    path = tmp_path / "kubelet.sock"
    with listening(path, 1):
        made = path.stat().st_ino
        with pytest.raises(SocketFileError, match="another program serves"), listening(path, 1):
            pass
        assert path.stat().st_ino == made


def test_a_name_that_the_kernel_refuses_is_named(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 120)
    with pytest.raises(SocketFileError, match=f"cannot serve on {path}: "), listening(path, 1):
        pass


async def test_the_kubelets_own_socket_is_never_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Also while the kubelet starts again, when nobody serves there."""
    theirs = tmp_path / "kubelet.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(theirs))
    (tmp_path / "link").symlink_to(tmp_path)
    made = theirs.stat().st_ino
    server = PodResourcesServer(tmp_path / "link" / "kubelet.sock", theirs, 60.0)
    async with running(server.run()):
        await eventually(lambda: "the podresources socket is not served" in caplog.text)
    assert theirs.stat().st_ino == made


async def test_why_exporters_get_no_answer_is_known_until_they_get_one(tmp_path: Path) -> None:
    made, wakes = Scene(tmp_path), list[str]()
    server = PodResourcesServer(
        made.path, made.theirs, 60.0, made.clock, lambda: wakes.append(server.problem)
    )
    made.path.parent.mkdir()
    made.path.touch()
    why = f"exporters get no answer: cannot serve on {made.path}: there is a file that is no socket"
    async with running(server.run()):
        await eventually(lambda: server.problem.startswith(why))
        made.path.unlink()
        await made.clock.advance(60)
        await made.begins()
        await eventually(lambda: not server.problem)
    assert [bool(one) for one in wakes] == [True, False]
