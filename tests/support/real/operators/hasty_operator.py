"""`python -m numapin_operator` with short waits, for tests that wait until they have passed.

Their order stays: a Lease outlasts its renewal, and a watch is given up after its session.
"""

import sys
from dataclasses import replace
from functools import partial
from itertools import repeat
from types import ModuleType

from numapin_client.cache.informer_settings import InformerTiming
from numapin_operator import __main__ as program
from numapin_operator.annotation import denied
from numapin_operator.heartbeats import silence, watcher
from numapin_operator.installation.leader_election import take_part
from numapin_operator.installation.observed_lease import LeaseTiming
from numapin_operator.noderesourcetopology import publisher
from numapin_operator.observe import contact, informers
from numapin_operator.observe.policy_source import kopf_source
from numapin_operator.shards.elector import take_shards

TIMING = LeaseTiming(lease_seconds=4.0, renew_deadline_seconds=3.0, retry_seconds=0.5)


def hurry() -> None:
    """Shorten what the programs wait for."""
    _replace(program, "take_part", partial(take_part, timing=TIMING))
    _replace(program, "take_shards", partial(take_shards, timing=TIMING))
    _replace(contact, "GRACE_SECONDS", 2.0)
    _replace(denied, "DENIED_SECONDS", 1.0)
    _replace(publisher, "SWEEP_SECONDS", 2.0)
    _replace(watcher, "LOOK_SECONDS", 0.5)
    _replace(silence, "GAP_SECONDS", 3.0)
    _replace(silence, "SHORTEST_SECONDS", 1.0)
    for name in ("TIMING", "ASSIGNMENT_TIMING"):
        before: InformerTiming = getattr(informers, name)
        short = replace(
            before, session_seconds=(5.0, 7.0), grace_seconds=2.0, backoff_cap_seconds=1.0
        )
        _replace(informers, name, short)
    _replace(kopf_source, "SESSION_SECONDS", 7)
    _replace(kopf_source, "INACTIVE_SECONDS", 9.0)
    _replace(kopf_source, "EndlessBackoffs", partial(repeat, 0.5))


def _replace(module: ModuleType, name: str, value: object) -> None:
    """Replace what has this name; AttributeError if nothing has."""
    getattr(module, name)
    setattr(module, name, value)


if __name__ == "__main__":
    hurry()
    sys.exit(program.main())
