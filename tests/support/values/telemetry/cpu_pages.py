"""Pages of exclusive CPUs, as an enforcer serves them."""

from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]


def container(
    *,
    name: str = "main",
    cpus: str = "4-5",
    uid: str = "1",
    ran: float | None = 0.0,
    threads: Sequence[Sequence[float]] = (),
    complete: bool = True,
) -> Json:
    """A container with exclusive CPUs."""
    return {
        "namespace": "d",
        "pod": f"p{uid}",
        "podUID": uid,
        "container": name,
        "cpus": cpus,
        "ranSeconds": ran,
        "threads": list(threads),
        "threadsComplete": complete,
    }


def task(
    id_: int,
    name: str,
    cpu: int,
    ran: float = 0.0,
    slices: int = 0,
    *,
    kernel: bool = False,
    start: int = 7,
) -> Json:
    """A task of no exclusive container."""
    return {
        "id": id_,
        "startTicks": start,
        "name": name,
        "kernel": kernel,
        "cpu": cpu,
        "ranSeconds": ran,
        "slices": slices,
    }


def interrupt(number: str, name: str, counts: Mapping[int, int]) -> Json:
    """A row of /proc/interrupts."""
    return {"number": number, "name": name, "counts": {str(cpu): n for cpu, n in counts.items()}}


def cpu_page(
    taken: float,
    *,
    containers: Sequence[Json] | None = None,
    ran: Mapping[int, float] | None = None,
    slices: Mapping[int, int | None] | None = None,
    interrupts: Sequence[Json] | None = None,
    tasks: Sequence[Json] = (),
    complete: bool = True,
) -> Json:
    """A page of CPUs 4 to 6."""
    timer = [interrupt("LOC", "Local timer interrupts", {4: 1, 5: 1})]
    return {
        "takenSeconds": taken,
        "containers": [container()] if containers is None else list(containers),
        "cpus": [
            {
                "cpu": cpu,
                "ranSeconds": (ran or {}).get(cpu, 0.0),
                "slices": (slices or {}).get(cpu, 0),
            }
            for cpu in (4, 5, 6)
        ],
        "interrupts": timer if interrupts is None else list(interrupts),
        "tasks": list(tasks),
        "tasksComplete": complete,
    }
