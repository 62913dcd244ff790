"""A run with random valid and hostile objects, against the real kube-apiserver and the operator.

Three authors work side by side: a tenant who creates, changes and deletes pods; a node whose
enforcer and kubelet lie; an administrator who writes absurd policies. Beside them are control nodes
with a policy and pods of their own. All the time it is checked that

    the operator never ends, its loop never stands still, and it leads but for short times,
    the lasting pods of the control nodes keep exactly their CPUs,
    a new pod on a control node is placed within a bound,
    no CPU has two owners in any NodeAssignment,
    an Event tells every refusal of a pod that still exists.

Meanwhile the lead is lost and won again, control Nodes and their NodeAssignments are deleted, every
few minutes another API server takes over, and answers every watch with 410, or none answers at all.

An author's operation depends on the seed, on its number, and on what exists. FOLDER gets each
operation with its outcome, the operator's log, and a summary with every violation. An operator that
has ended is started again, so that a run can find more than one fault. The exit status is 1 after
a violation.
"""

import argparse
import asyncio
import secrets
import tempfile
import time
from pathlib import Path

from numapin_campaigns.frame.command import write
from numapin_campaigns.hostile.disturbances import DISTURBANCES
from numapin_campaigns.hostile.run import Record, perform
from numapin_lab.installed.manifests import OVERLAY
from numapin_lab.played.control_plane import large_plane

HELP = "random valid and hostile objects against the operator"
BOUNDS = {
    "--placed": (30.0, "until a new pod on a control node is placed"),
    "--step": (0.1, "of CPU time that one step of the loop may take"),
    "--told": (60.0, "from a refusal to its Event"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """How long, with which seed, within which bounds."""
    parser.add_argument("--minutes", type=float, default=5.0, help="how long (5)")
    parser.add_argument("--seed", type=int, default=None, help="default: a random one, printed")
    for name, one in DISTURBANCES.items():
        shown = f"seconds until {one.meaning}, again and again; 0: never ({one.seconds:.0f})"
        parser.add_argument(f"--{name}", type=float, default=one.seconds, help=shown)
    parser.add_argument("--output", type=Path, default=Path(".hostile"), help="where records go")
    for name, (default, meaning) in BOUNDS.items():
        parser.add_argument(name, type=float, default=default, help=f"seconds {meaning}")


def run(options: argparse.Namespace) -> bool:
    """One run; its report is printed and written. Whether there was no violation."""
    seed = secrets.randbits(32) if options.seed is None else options.seed
    folder = options.output / f"{time.strftime('%Y%m%d-%H%M%S')}-{seed}"
    print(f"seed {seed}, records in {folder}", flush=True)
    record = Record(folder.absolute(), seed)
    with tempfile.TemporaryDirectory(prefix="numapin-hostile-") as name:
        plane = large_plane(Path(name) / "plane")
        try:
            plane.start()
            plane.kubectl("apply", "--server-side", "-k", str(OVERLAY))
            rights = OVERLAY.parents[1] / "components" / "eviction" / "rbac.yaml"
            plane.kubectl("apply", "-f", str(rights))
            report = asyncio.run(perform(plane, record, options))
        finally:
            plane.stop()
    write(report, record.folder / "summary.json")
    print(report.summary())
    return report.good
