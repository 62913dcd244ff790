"""Who created a pod, and how important it is. Does no I/O."""

from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from typing import Any, Final

from numapin_operator.placement import Origin

CRITICAL_PRIORITY: Final = 2_000_000_000
"""The lowest priority of a critical pod. Source: Kubernetes, `scheduling.SystemCriticalPriority`.
"""

SHARED_ORIGINS: Final = 16_384
"""How many controllers are remembered, so that their pods share one value."""

_CRITICAL_CLASSES: Final = frozenset({"system-node-critical", "system-cluster-critical"})


def origin_of(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> Origin:
    """Who created a pod, and how important it is; accepts any pod."""
    priority = spec.get("priority")
    if str(spec.get("priorityClassName")) in _CRITICAL_CLASSES:
        priority = CRITICAL_PRIORITY
    known = priority if isinstance(priority, int) else 0
    owners = metadata.get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, Mapping) and owner.get("controller") is True:
            return _shared_origin(str(owner.get("kind")), str(owner.get("uid")), known)
    return _shared_origin("", "", known)


@lru_cache(SHARED_ORIGINS)
def _shared_origin(kind: str, uid: str, priority: int) -> Origin:
    return Origin(intern(kind), uid, priority)
