"""`numapin-operator --check` with the operator's rights on a real API server."""

import asyncio
import json
import os
import sys
from pathlib import Path

from numapin_api import names
from numapin_client.resources import PODS, Key
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_world import RealWorld

COMPONENTS = ("operator", "enforcer", "standby")


def pod(component: str) -> dict[str, object]:
    labels = {"app.kubernetes.io/name": "numapin", "app.kubernetes.io/component": component}
    containers = [{"name": "main", "image": "none"}]
    return {
        "metadata": {"name": component, "namespace": names.NAMESPACE, "labels": labels},
        "spec": {"containers": containers, "automountServiceAccountToken": False},
    }


async def test_it_succeeds_once_all_pods_are_ready_and_an_operator_leads(
    world: RealWorld, tmp_path: Path
) -> None:
    operator, log = OperatorProcess(world.operator_kubeconfig, tmp_path), tmp_path / "check.log"
    account = {"metadata": {"name": "default", "namespace": names.NAMESPACE}}
    text = json.dumps({"apiVersion": "v1", "kind": "ServiceAccount"} | account)
    world.plane.kubectl("apply", "-f", "-", text=text)
    for component in COMPONENTS:
        await world.admin.create(PODS, pod(component))
    command = ["-m", "numapin_operator", "--check", f"--kubeconfig={world.operator_kubeconfig}"]
    with log.open("wb") as output:
        environment = {**os.environ, "KUBECONFIG": ""}
        check = await asyncio.create_subprocess_exec(
            sys.executable, *command, stdout=output, stderr=output, env=environment
        )
    try:
        await until(lambda: log.read_text().count("is not ready") == len(COMPONENTS), log)
        await operator.start("--leader-elect")
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        for component in COMPONENTS:
            key = Key(component, names.NAMESPACE)
            await world.admin.merge_patch(PODS, key, ready, subresource="status")
        assert await check.wait() == 0, log.read_text()
        assert "numapin works" in log.read_text().splitlines()[-1]
    finally:
        if check.returncode is None:
            check.kill()
        for component in COMPONENTS:
            await world.admin.delete(PODS, Key(component, names.NAMESPACE))
        await operator.stop()
