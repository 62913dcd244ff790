"""Credentials that plug-ins and auth providers hand out."""

import asyncio
import base64
import sys
import textwrap
from pathlib import Path

import pytest
import yaml

from numapin_client.errors import LoginError
from numapin_client.login.credential_providers import ExecCredential, ExecPlugin
from numapin_client.login.credentials import Login
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import Json
from support.fakes.manual_clock import ManualClock


def write(path: Path, user: Json) -> str:
    content = {
        "clusters": [{"name": "c", "cluster": {"server": "https://h"}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


async def header(login: Login) -> str | None:
    [credential] = login.credentials
    return await credential.authorization()


def plugin(tmp_path: Path, script: str) -> Json:
    (tmp_path / "plugin.py").write_text(textwrap.dedent(script))
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": ["plugin.py"],
            "installHint": "install the plug-in",
        }
    }


COUNTING = """
    import json, pathlib
    runs = pathlib.Path("runs")
    count = len(runs.read_text()) if runs.exists() else 0
    runs.write_text("x" * (count + 1))
    status = {"token": f"token-{count}"}
    EXPIRY
    print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1",
                      "kind": "ExecCredential", "status": status}))
"""


async def test_a_plugin_is_run_once_and_again_when_its_token_is_refused(tmp_path: Path) -> None:
    user = plugin(tmp_path, COUNTING.replace("EXPIRY", ""))
    login = kubeconfig_login(write(tmp_path / "config", user))
    assert [await header(login), await header(login)] == ["Bearer token-0"] * 2
    await login.credentials[0].renew()
    assert await header(login) == "Bearer token-1"


async def test_a_plugin_is_run_again_when_its_token_expires(tmp_path: Path) -> None:
    expiry = 'status["expirationTimestamp"] = "2020-01-01T00:00:00Z"'
    user = plugin(tmp_path, COUNTING.replace("EXPIRY", expiry))
    login = kubeconfig_login(write(tmp_path / "config", user))
    assert [await header(login), await header(login)] == ["Bearer token-0", "Bearer token-1"]


async def test_a_token_is_used_until_shortly_before_its_expiry(tmp_path: Path) -> None:
    expiry = 'status["expirationTimestamp"] = "2030-01-01T00:10:00Z"'
    entry = plugin(tmp_path, COUNTING.replace("EXPIRY", expiry))["exec"]
    clock = ManualClock()
    credential = ExecCredential(ExecPlugin("exec", entry, {}, tmp_path), None, clock)
    assert await credential.authorization() == "Bearer token-0"
    await clock.advance(589)
    assert await credential.authorization() == "Bearer token-0"
    await clock.advance(1)
    assert await credential.authorization() == "Bearer token-1"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("import sys; print('no such tenant', file=sys.stderr); sys.exit(3)", "returned 3.*tenant"),
        ("print('not json')", "failed to decode"),
        (COUNTING.replace("EXPIRY", "status = {}"), "no token and no certificate"),
    ],
)
async def test_a_plugin_that_fails_says_where(tmp_path: Path, script: str, message: str) -> None:
    login = kubeconfig_login(write(tmp_path / "config", plugin(tmp_path, script)))
    with pytest.raises(LoginError, match=message) as caught:
        await header(login)
    assert "users[name=u].exec" in str(caught.value)


async def test_a_plugin_that_is_not_installed_gives_its_hint(tmp_path: Path) -> None:
    user = plugin(tmp_path, "")
    user["exec"]["command"] = "no-such-plugin"
    login = kubeconfig_login(write(tmp_path / "config", user))
    with pytest.raises(LoginError, match=r"no-such-plugin.*install the plug-in"):
        await header(login)


async def test_an_auth_provider_is_left_to_the_kubernetes_package(tmp_path: Path) -> None:
    claims = base64.urlsafe_b64encode(b'{"exp": 99999999999}').decode().rstrip("=")
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": f"aa.{claims}.bb"}}}
    login = kubeconfig_login(write(tmp_path / "config", user))
    assert await header(login) == f"Bearer aa.{claims}.bb"


async def test_an_auth_provider_without_token_says_where(tmp_path: Path) -> None:
    user = {"auth-provider": {"name": "unheard-of"}}
    login = kubeconfig_login(write(tmp_path / "config", user))
    with pytest.raises(LoginError, match=r"users\[name=u\]\.auth-provider: no token"):
        await header(login)


def test_the_kubernetes_package_may_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "numapin_client.login.credential_providers", raising=False)
    monkeypatch.delattr("numapin_client.login.credential_providers", raising=False)
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    monkeypatch.setitem(sys.modules, "kubernetes.client", None)
    with pytest.raises(LoginError, match="numapin\\[login\\]"):
        kubeconfig_login(write(tmp_path / "config", plugin(tmp_path, "")))


async def test_two_event_loops_share_one_run_of_the_plugin(tmp_path: Path) -> None:
    """As the operator's own loop, kopf's and that of the election do; several requests each."""
    slow = COUNTING.replace("EXPIRY", "import time; time.sleep(0.2)")
    login = kubeconfig_login(write(tmp_path / "config", plugin(tmp_path, slow)))

    async def ask_thrice() -> list[str | None]:
        return await asyncio.gather(*(header(login) for _ in range(3)))

    elsewhere = asyncio.create_task(asyncio.to_thread(asyncio.run, ask_thrice()))
    answers = await ask_thrice() + await elsewhere
    assert answers == ["Bearer token-0"] * 6
