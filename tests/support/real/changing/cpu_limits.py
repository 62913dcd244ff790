"""What the cpu controller has for a container and its pod, on each version of cgroups."""

from pathlib import Path

from numapin_lab.running_lab import RunningLab

NO_QUOTA = -1


def cpu_files(lab: RunningLab, name: str, *, v1: str, v2: str) -> list[Path]:
    """A file of the cpu controller of a container and of its pod, by its name on each version."""
    group = lab.container(name)
    if (group / v2).exists():
        return [group / v2, group.parent / v2]
    paths = [path.relative_to(lab.kubepods.parent) for path in (group, group.parent)]
    folders = lab.cluster.runtime.cgroup.folders()
    (folder,) = (one for one in folders if (one / paths[0] / v1).exists())
    return [folder / path / v1 for path in paths]


def quotas(lab: RunningLab, name: str) -> tuple[int, ...]:
    """The CFS quota of a container and of its pod, in microseconds; -1 for none."""
    files = cpu_files(lab, name, v1="cpu.cfs_quota_us", v2="cpu.max")
    texts = [file.read_text().split()[0] for file in files]
    return tuple(NO_QUOTA if text == "max" else int(text) for text in texts)
