"""A containerd of a test's own; however many there are, none meets another's containers."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from numapin_lab.components.build import provide
from numapin_lab.components.catalog import RUNTIME
from numapin_lab.node.cgroups import LabCgroup
from numapin_lab.node.containerd import Runtime


@contextmanager
def private_runtime(folder: Path, *, systemd: bool = False) -> Iterator[Runtime]:
    """containerd in `folder`, running; at the end it is gone, with whatever still runs in it."""
    name = f"numapin-test-{secrets.token_hex(4)}"
    programs = {name: found.path for name, found in provide(RUNTIME).items()}
    runtime = Runtime(
        folder / "containerd", Path("/run") / name, LabCgroup(name), programs, systemd
    )
    try:
        runtime.start()
        yield runtime
    finally:
        runtime.stop()
