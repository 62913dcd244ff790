"""An API server on which pods can be held."""

from collections.abc import AsyncIterator

import pytest

from support.real.operators.held_pods import HeldScene
from support.real.operators.operator_world import RealWorld


@pytest.fixture
async def scene(world: RealWorld) -> AsyncIterator[HeldScene]:
    """A namespace that has opted in, where the component of the manifests is applied.

    Before Kubernetes 1.36 it is applied without what sets the gates (docs/holding.md).
    """
    policies = ("MutatingAdmissionPolicy", "admissionregistration.k8s.io/v1")
    made = HeldScene(world, sets_gates=await world.serves(*policies))
    async with world.component("holding", without="" if made.sets_gates else "gate.yaml"):
        await made.opt_in()
        yield made
