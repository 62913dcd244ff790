"""New pods at a rate: how long each waits, beside the API server's own time for it."""

import math
import random

from numapin_benchmarks.scale.population import EXCLUSIVE_CPUS, pod_body
from numapin_benchmarks.scale.steps.scene import Created, Scene, quantiles
from numapin_benchmarks.scale.steps.used import WRITE_VERBS, Mark, Moment, Served
from numapin_benchmarks.surroundings import progress


async def churn(scene: Scene, rate: int, count: int) -> None:
    """New pods, evenly over time, each on a random node: from bound to written."""
    made, notes = Created(), scene.notes
    begun, mark = await Moment.now(scene), Mark.now(scene)
    scene.operator.spans.take()
    bodies = [
        pod_body(
            f"churn-{rate}-{number}", random.choice(scene.size.names), EXCLUSIVE_CPUS[number % 2]
        )
        for number in range(count)
    ]
    reached = await made.create_all(scene.api, bodies, rate)
    await scene.until_decided([*made.bound])
    cost, used = mark.cost(scene), await Served.since(begun, scene)
    waited = quantiles([(notes.decided(uid) or math.inf) - at for uid, at in made.bound.items()])
    created = quantiles(made.seconds)
    assigned = sum(
        number
        for (verb, resource, part), number in used.requests.items()
        if resource == "nodeassignments" and not part and verb in WRITE_VERBS
    )
    scene.figures[f"{rate} pods a second"] = (
        {
            "pods": count,
            "reached_rate": round(reached, 1),
            "refused": sum(uid in notes.refused for uid in made.bound),
            "create_ms": created["p50_ms"],
            "create_p99_ms": created["p99_ms"],
            "ratio_p50": round(waited["p50_ms"] / created["p50_ms"], 2),
            "ratio_p99": round(waited["p99_ms"] / created["p99_ms"], 2),
            "cpu_ms_per_pod": round(cost["cpu_seconds"] / count * 1000, 2),
            "api_cpu_ms_per_pod": round(used.times.api / count * 1000, 1),
            "spec_writes_per_pod": round(assigned / count, 3),
            "writes": used.writes(),
        }
        | waited
        | own_steps(scene)
        | cost
    )
    progress(f"{rate} pods a second: created {created}, waited {waited}")


def own_steps(scene: Scene) -> dict[str, float]:
    """The operator's own steps on the way of these pods; nothing unless they were traced."""
    return {
        f"{name}_{figure}": value
        for name, seconds in sorted(scene.operator.spans.take().items())
        for figure, value in quantiles(seconds).items()
        if figure != "max_ms"
    }
