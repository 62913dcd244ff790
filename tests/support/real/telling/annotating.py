"""An operator that tells workloads their CPUs, in a running lab."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from numapin_lab.node.agents import Agent
from numapin_lab.running_lab import RunningLab

COMPONENT = Path(__file__).parents[4] / "manifests" / "components" / "cpu-annotation"
FILES = [f"--filename={COMPONENT / name}" for name in ("rbac.yaml", "admission.yaml")]


@contextmanager
def annotating(lab: RunningLab) -> Iterator[Agent]:
    """Have the lab's operator annotate pods, with the right to do so; yields that operator."""
    lab.kubectl("apply", *FILES)
    usual = lab.agent("operator")
    usual.stop()
    other = replace(usual, options=(*usual.options, "--annotate-pods"))
    try:
        other.start()
        other.wait_ready()
        yield other
    finally:
        other.stop()
        lab.restart("operator")
        lab.kubectl("delete", *FILES)
