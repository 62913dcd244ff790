"""What a pod says of itself, by its annotations, which whoever may edit it may change."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from numapin_api import names
from numapin_cli.inputs.manifests import Manifest, section


@dataclass(frozen=True, slots=True)
class OwnWords:
    """What a pod says.

    Attributes:
        reason: why it was refused; empty if it does not say so.
        numbers: with which numbers.
        containers: what containers have, as sentences by their names.
    """

    reason: str
    numbers: str
    containers: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, pod: Manifest) -> "OwnWords":
        """Read the annotations of a pod; accepts any text in them."""
        annotations = section(pod.metadata, "annotations")
        refused = str(annotations.get(names.REFUSED_ANNOTATION) or "")
        reason, _, numbers = refused.partition(": ")
        containers = tuple(_containers(annotations.get(names.CPUS_ANNOTATION)))
        return cls(reason, numbers, containers)


def _containers(text: object) -> Iterator[tuple[str, str]]:
    """The CPUs of each container, in the format of docs/notice.md; none of another text."""
    try:
        said: Any = json.loads(str(text))["containers"].items()
    except (ValueError, KeyError, TypeError, AttributeError):
        return
    for name, one in said:
        if isinstance(one, Mapping):
            numa = f" on NUMA nodes {one['numaNodes']}" if one.get("numaNodes") else ""
            yield str(name), f"CPUs {one.get('cpus')}{numa}"
