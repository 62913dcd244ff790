"""No CPU is ever in two places: real cgroups are read every millisecond while pods come and go."""

import json
import subprocess
import sys

from numapin_lab.session import BUSY, Session, eventually, pod, policy

SECONDS = 25
STARTS = 6


def test_a_cpu_is_never_in_two_places_while_owners_come_and_go(session: Session) -> None:
    session.apply(policy(), pod("neighbour", BUSY))
    session.wait_running("neighbour")
    session.wait_settled()
    command = [sys.executable, "-m", "numapin_lab.overlap", str(session.kubepods), str(SECONDS)]
    with subprocess.Popen([*command, "--shared=0"], stdout=subprocess.PIPE, text=True) as watcher:
        starts = 0
        while watcher.poll() is None and starts < STARTS:
            starts += 1
            session.apply(pod(f"owner-{starts}", BUSY, cpu="1"))
            session.wait_running(f"owner-{starts}")
            session.delete("pod", f"owner-{starts}")
            eventually(lambda: session.wait_settled().spec.containers, ())
        output, _ = watcher.communicate(timeout=60)
    seen = json.loads(output)
    assert starts >= 3
    assert seen["ownedSamples"] > 100, seen
    assert seen["overlaps"] == []
