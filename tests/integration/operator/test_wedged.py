"""A connection that stays open but delivers nothing is noticed, for every kind that is watched."""

from pathlib import Path

from numapin_lab.processes.ports import choose
from support.real.operators.operator_process import OperatorProcess, probe, until
from support.real.operators.operator_world import RealWorld
from support.real.proxies.tcp_proxy import wire_to

KINDS = {"pods", "nodes", "namespaces", "cpupolicies", "nodeassignments"}


async def test_every_wedged_watch_is_named_by_the_readiness_probe(
    world: RealWorld, tmp_path: Path
) -> None:
    ports = world.plane.ports
    (health_port,) = choose(1)
    page = f"http://127.0.0.1:{health_port}/readyz"
    async with wire_to("127.0.0.1", ports.apiserver) as wire:
        through = tmp_path / "through"
        text = world.operator_kubeconfig.read_text()
        through.write_text(text.replace(f":{ports.apiserver}", f":{wire.port}"))
        operator = OperatorProcess(through, tmp_path, hasty=True)
        await operator.start(f"--health-address=127.0.0.1:{health_port}")
        try:

            async def ready() -> bool:
                return (await probe(page))[0] == 200

            async def all_named() -> bool:
                status, text = await probe(page)
                return status == 503 and {line.split(":")[0] for line in text.split("\n")} >= KINDS

            await until(ready, operator.log)
            wire.fall_silent()
            await until(all_named, operator.log)
            wire.mend()
            await until(ready, operator.log)
            assert "listing again" not in operator.log.read_text()
        finally:
            await operator.kill()
