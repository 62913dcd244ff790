"""The CPUs that the DRA driver dra.cpu has given to ResourceClaims on this node."""

import logging
from pathlib import Path
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import ClaimedCpus
from numapin_daemon import atomic_file
from numapin_enforcer.node.cdi_spec import CdiSpecError, claimed_cpus

LOG: Final = logging.getLogger(__name__)

FILES: Final = "dra.k8s.io-cpu_*.json"
MOST_CLAIMS: Final = 128
MOST_BYTES: Final = 64 * 1024
"""A file has 300 bytes, besides its CPUs."""


class DraClaims:
    """The claims as they were read last.

    The driver chooses the CPUs when the kubelet prepares a pod's claims, before it creates the
    pod's containers, and makes a file for each claim. The file goes when the pod has ended. So a
    file that cannot be read any more stands for the claims that it had.

    Attributes:
        problem: which file cannot be used and why; empty if all can.
    """

    def __init__(self, folder: Path) -> None:
        """Know nothing yet. Args: `folder` is where container runtimes look for CDI files."""
        self._folder = folder
        self._changed_ns: int | None = None
        self._read: dict[Path, tuple[ClaimedCpus, ...]] = {}
        self._found: tuple[ClaimedCpus, ...] = ()
        self.problem = ""

    def on(self, online: CpuSet) -> tuple[ClaimedCpus, ...]:
        """The first `MOST_CLAIMS` claims, by UID, that have CPUs which are online; only these."""
        return tuple(
            ClaimedCpus(one.claim_uid, cpus) for one in self._found if (cpus := one.cpus & online)
        )

    def observe(self, *, full_resync: bool) -> None:
        """Read the files if one has come or gone, or all of them again."""
        try:
            changed_ns = self._folder.stat().st_mtime_ns
        except OSError:
            changed_ns = None
        if changed_ns == self._changed_ns and not full_resync:
            return
        self._changed_ns, before = changed_ns, self.problem
        self.problem = ""
        self._read = {path: found for path in self._files() if (found := self._claims_of(path))}
        claims = {one.claim_uid: one for listed in self._read.values() for one in listed}
        if len(claims) > MOST_CLAIMS:
            self.problem = f"{self._folder} has {len(claims)} claims, {MOST_CLAIMS} are used"
        self._found = tuple(claims[uid] for uid in sorted(claims)[:MOST_CLAIMS])
        if self.problem and self.problem != before:
            LOG.warning(
                "claims of the DRA driver dra.cpu are left out", extra={"why": self.problem}
            )

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob(FILES))

    def _claims_of(self, path: Path) -> tuple[ClaimedCpus, ...]:
        try:
            return tuple(claimed_cpus(atomic_file.read(path, most_bytes=MOST_BYTES)))
        except FileNotFoundError:
            return ()
        except (OSError, CdiSpecError) as error:
            self.problem = f"{path} cannot be used: {error}"
            return self._read.get(path, ())
