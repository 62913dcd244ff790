"""The files of a kubelet's configuration, as one object."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from numapin_cli.inputs.manifests import read_documents, section
from numapin_cli.subcommand import CommandError

KIND: Final = "KubeletConfiguration"


def read_kubelet_configuration(files: Iterable[Path]) -> Mapping[str, Any]:
    """A kubelet's configuration: the file, then drop-ins, of which the last one counts.

    Other documents of a file are not read. The answer of the kubelet's `/configz` does as well.

    Raises:
        CommandError: a file cannot be read, or has no KubeletConfiguration or several.
    """
    merged: Mapping[str, Any] = {}
    for file in files:
        documents = (one for one in read_documents(file) if isinstance(one, Mapping))
        found = [
            section(one, "kubeletconfig") or one for one in documents if _is_configuration(one)
        ]
        if len(found) != 1:
            raise CommandError(
                f"{file}: {len(found)} documents of kind {KIND} are in it; give a file with one"
                " (/var/lib/kubelet/config.yaml, or kubectl get --raw"
                " /api/v1/nodes/NAME/proxy/configz)"
            )
        merged = _merged(merged, found[0])
    return merged


def _is_configuration(document: Mapping[str, Any]) -> bool:
    return document.get("kind") == KIND or bool(section(document, "kubeletconfig"))


def _merged(before: Mapping[str, Any], after: Mapping[str, Any]) -> Mapping[str, Any]:
    """Objects merged key by key; of all else the later one. Source: kubelet, --config-dir."""
    merged = dict(before)
    for key, value in after.items():
        known = merged.get(key)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            merged[key] = _merged(known, value)
        else:
            merged[key] = value
    return merged
