"""The sampler as a process of its own."""

import pickle
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from numapin_campaigns.sampling.samples import Samples
from numapin_lab.errors import LabError
from numapin_lab.running_lab import RunningLab

SAMPLER_SECONDS: Final = 300


@contextmanager
def sampling(lab: RunningLab, bundles: Path, output: Path, rest_seconds: float) -> Iterator[Path]:
    """Run the sampler meanwhile; afterwards its samples are in the file."""
    file = output / "samples.pickle"
    command = [
        sys.executable,
        "-m",
        "numapin_campaigns.sampling.sampler",
        f"--kubepods={lab.kubepods}",
        f"--bundles={bundles}",
        f"--kubeconfig={lab.cluster.plane.kubeconfig}",
        f"--node={lab.node}",
        f"--output={file}",
        f"--rest-seconds={rest_seconds}",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as sampler:
        try:
            _wait_for_first_line(sampler)
            yield file
        finally:
            sampler.send_signal(signal.SIGTERM)
            status = sampler.wait(timeout=SAMPLER_SECONDS)
    if status != 0:
        raise LabError(f"the sampler ended with status {status}")


def read_and_remove(file: Path) -> Samples:
    """The samples in a file that a sampler has written."""
    samples: Samples = pickle.loads(file.read_bytes())
    file.unlink()
    return samples


def _wait_for_first_line(sampler: subprocess.Popen[bytes]) -> None:
    """Return when the sampler says that it has seen the NodeAssignment.

    Raises:
        LabError: it ended, or said nothing for `SAMPLER_SECONDS`.
    """
    assert sampler.stdout is not None
    readable, _, _ = select.select([sampler.stdout], [], [], SAMPLER_SECONDS)
    if not readable or not sampler.stdout.readline():
        raise LabError(f"the sampler has not seen the NodeAssignment in {SAMPLER_SECONDS} s")
