"""The annotation by which a pod is told its CPUs; its digest, since it may be long. Does no I/O."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from numapin_api import names


def annotation_digest(text: str | None) -> bytes:
    """What stands for an annotation in the cache; empty if there is none."""
    return b"" if text is None else blake2b(text.encode(), digest_size=16).digest()


def cpus_annotation(metadata: Mapping[str, Any]) -> bytes:
    """The digest of a pod's annotation, whoever wrote it; accepts any metadata."""
    annotations = metadata.get("annotations")
    text = annotations.get(names.CPUS_ANNOTATION) if isinstance(annotations, Mapping) else None
    return annotation_digest(text if isinstance(text, str) else None)
