"""Clients of the real API server and of the fake one, and a namespace for each test."""

import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from numapin_client.client import ApiClient, connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import NAMESPACES, Key, Resource
from numapin_lab.controlplane.servers import ControlPlane
from support.fakes.apiserver import FakeApiServer

SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True)


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[ApiClient]:
    """The administrator's client."""
    async with connect(kubeconfig_login(str(control_plane.kubeconfig))) as opened:
        yield opened


@pytest.fixture
async def namespace(client: ApiClient) -> AsyncIterator[str]:
    """A namespace of the test's own, fit for pods."""
    name = f"client-{secrets.token_hex(4)}"
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    # No controller-manager runs here; without this account no pod may be created.
    account = {"metadata": {"name": "default", "namespace": name}}
    await client.create(SERVICE_ACCOUNTS, account)
    yield name
    await client.delete(NAMESPACES, Key(name))


@pytest.fixture(params=["real", "fake"])
async def any_client(request: pytest.FixtureRequest, client: ApiClient) -> AsyncIterator[ApiClient]:
    """A client of either server: what a test asks of one, the other must do as well."""
    async with AsyncExitStack() as stack:
        if request.param == "fake":
            server = await stack.enter_async_context(FakeApiServer())
            client = await stack.enter_async_context(connect(server.login))
        yield client
