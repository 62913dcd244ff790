"""A server of the podresources API that runs."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from grpclib.server import Server

from support.fakes.kubelets.before_exporters import Scene, passed
from support.real.waiting import running


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    """A pass has ended, and the server is asked for the first time."""
    made = Scene(tmp_path)
    kubelet = Server([made.kubelet])
    await kubelet.start(path=str(made.theirs))
    made.server.passed(*passed(made.clock))
    async with running(made.server.run()):
        await made.begins()
        yield made
        made.kubelet.may_answer.set()
    made.channel.close()
    kubelet.close()
