"""A measurement for scripts. Does no I/O."""

from typing import Any

from numapin_cli.noise.measured import CpuNoise, GroupNoise, Measured

Json = dict[str, Any]


def to_json(measured: Measured) -> Json:
    """The whole measurement; null is what is not known."""
    return {
        "node": measured.node,
        "seconds": round(measured.seconds, 3),
        "disturbed": measured.is_disturbed,
        "containers": [_group_json(one, measured.seconds) for one in measured.groups],
        "notes": list(measured.notes),
    }


def _group_json(one: GroupNoise, seconds: float) -> Json:
    return {
        "podUID": one.group.pod_uid,
        "containers": [
            {"namespace": each.namespace, "pod": each.pod, "container": each.container}
            for each in one.group.containers
        ],
        "cpus": str(one.group.cpus),
        "disturbed": one.is_disturbed(seconds),
        "foreignSeconds": one.foreign_seconds,
        "foreignSwitches": one.foreign_switches,
        "waitedSeconds": one.waited_seconds,
        "migrations": one.migrations,
        "perCPU": [_cpu_json(cpu) for cpu in one.cpus.values()],
    }


def _cpu_json(one: CpuNoise) -> Json:
    return {
        "cpu": one.cpu,
        "switches": one.switches.known,
        "tasks": [
            {
                "name": task.name,
                "kernel": task.is_kernel,
                "seconds": task.seconds,
                "switches": task.switches,
            }
            for task in one.most_tasks
        ],
        "interrupts": [
            {"number": number, "name": name, "count": count}
            for (number, name), count in one.most_interrupts
        ],
    }
