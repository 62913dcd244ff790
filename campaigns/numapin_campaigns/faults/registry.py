"""Every kind of fault. A campaign has those that it is able to have."""

from typing import Final

from numapin_campaigns.faults import crowd, io_uring, kills, overwrites, state_folder, tenant

KINDS: Final = (kills, overwrites, state_folder, tenant, io_uring, crowd)
"""Each of them has `FAULTS`, and `injector`, which injects one after the other."""

ALL: Final = (
    *kills.KILLS,
    *overwrites.FAULTS,
    *kills.STOPS,
    *state_folder.FAULTS,
    *tenant.FAULTS,
    *io_uring.FAULTS,
    *crowd.FAULTS,
)
"""In the order in which a plan draws them: a new one comes last, so that old seeds stay as they
are up to it."""
