"""What an enforcer reports of its node's hardware, checked before it is used.

An enforcer can stall its own node only: whatever it writes costs little to refuse. Does no I/O.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from pydantic import ValidationError

from numapin_api.hardware.limits import TOPOLOGY_BYTES
from numapin_api.hardware.restore import restore_topology
from numapin_api.hardware.status import TopologyStatus
from numapin_api.hardware.status_consistency import TopologyError
from numapin_api.invalid import invalid_fields
from numapin_api.topology import Topology
from numapin_operator.observe.assignments.decode import InvalidPartError

_TOPOLOGY: Final = "status.topology"


@dataclass(frozen=True, slots=True)
class Hardware:
    """A reported topology, and the digest of the JSON that it was decoded from."""

    topology: Topology
    digest: bytes


def decode_hardware(raw: object, before: Hardware | None) -> Hardware | None:
    """The topology; None if there is none. `before` is reused: it hardly ever changes.

    Raises:
        InvalidPartError: it is too large to be read, invalid, or contradicts itself.
    """
    if not raw:
        return None
    text = json.dumps(raw, sort_keys=True, separators=(",", ":"))
    if len(text) > TOPOLOGY_BYTES:
        raise InvalidPartError(
            f"{_TOPOLOGY}: has {len(text)} bytes, at most {TOPOLOGY_BYTES} are read"
        )
    digest = blake2b(text.encode(), digest_size=16).digest()
    if before is not None and before.digest == digest:
        return before
    return Hardware(_parse_topology(text), digest)


@lru_cache(maxsize=256)
def _parse_topology(text: str) -> Topology:
    """Nodes of one model often report the same topology, and then share it."""
    try:
        return restore_topology(TopologyStatus.model_validate_json(text))
    except ValidationError as error:
        raise InvalidPartError(str(invalid_fields(error, _TOPOLOGY)[0])) from error
    except TopologyError as error:
        raise InvalidPartError(f"{_TOPOLOGY}.{error}") from error
