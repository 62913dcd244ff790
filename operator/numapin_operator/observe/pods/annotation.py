"""The annotations by which a pod is told its CPUs, or that it was refused, or chooses NUMA nodes.

Of each only what is compared, since it may be long. Does no I/O.
"""

from collections.abc import Mapping
from hashlib import blake2b
from sys import intern
from typing import Any, Final

from numapin_api import names
from numapin_api.hardware.places import LONGEST_TEXT, Near

LONGEST_MARK: Final = 64


def annotation_digest(text: str | None) -> bytes:
    """What stands for an annotation in the cache; empty if there is none."""
    return b"" if text is None else blake2b(text.encode(), digest_size=16).digest()


def of_annotations(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a pod that depend on its annotations, whoever wrote them."""
    return {
        "annotated": cpus_annotation(metadata),
        "told": refused_annotation(metadata),
        "chosen": numa_nodes_annotation(metadata),
        "near": near_annotations(metadata),
    }


def cpus_annotation(metadata: Mapping[str, Any]) -> bytes:
    """The digest of a pod's annotation, whoever wrote it; accepts any metadata."""
    return annotation_digest(_text(metadata, names.CPUS_ANNOTATION))


def refusal_mark(text: str | None) -> str:
    """What is compared of the annotation of a refused pod: the reason; empty if there is none."""
    return "" if text is None else intern(text.partition(":")[0][:LONGEST_MARK] or "?")


def refused_annotation(metadata: Mapping[str, Any]) -> str:
    """The mark of a pod's annotation, whoever wrote it; accepts any metadata."""
    return refusal_mark(_text(metadata, names.REFUSED_ANNOTATION))


def numa_nodes_annotation(metadata: Mapping[str, Any]) -> str:
    """What a pod chooses of its NUMA nodes, cut if it is no choice; empty if it chooses nothing."""
    return intern((_text(metadata, names.NUMA_NODES_ANNOTATION) or "")[:LONGEST_MARK])


def near_annotations(metadata: Mapping[str, Any]) -> Near | None:
    """Near what a pod must or would rather be, each cut if it is too long for any list of places.

    None if it has no annotation about that.
    """
    texts = (
        _text(metadata, name)
        for name in (names.REQUIRE_NEAR_ANNOTATION, names.PREFER_NEAR_ANNOTATION)
    )
    required, preferred = ((text or "")[: LONGEST_TEXT + 1] for text in texts)
    return Near(intern(required), intern(preferred)) if required or preferred else None


def held_annotation(metadata: Mapping[str, Any]) -> str:
    """The mark of the annotation of a pod that waits for a node, whoever wrote it; likewise."""
    return refusal_mark(_text(metadata, names.HELD_ANNOTATION))


def _text(metadata: Mapping[str, Any], name: str) -> str | None:
    annotations = metadata.get("annotations")
    text = annotations.get(name) if isinstance(annotations, Mapping) else None
    return text if isinstance(text, str) else None
