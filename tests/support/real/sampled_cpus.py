"""What the kernel shows for a cgroup while something else goes on."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from support.real.kernel_cgroups import cpus_of


@contextmanager
def sampled(cgroup: str) -> Iterator[set[str]]:
    """Every set that the kernel showed for a cgroup meanwhile, read each millisecond.

    At least one read is made, however busy the machine is.
    """
    seen: set[str] = set()
    done = threading.Event()

    def look() -> None:
        while True:
            seen.add(cpus_of(cgroup))
            if done.wait(0.001):
                return

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()
