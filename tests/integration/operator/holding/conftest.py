"""An API server on which pods can be held."""

from collections.abc import AsyncIterator

import pytest

from support.real.operators.held_pods import HeldScene
from support.real.operators.operator_world import RealWorld


@pytest.fixture
async def scene(world: RealWorld) -> AsyncIterator[HeldScene]:
    """A namespace that has opted in, where the component of the manifests is applied."""
    made = HeldScene(world)
    async with world.component("holding"):
        await made.opt_in()
        yield made
