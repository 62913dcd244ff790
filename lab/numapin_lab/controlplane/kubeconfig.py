"""Kubeconfig files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def render(server: str, ca: Path, user: Mapping[str, str]) -> dict[str, Any]:
    """One cluster, one user, one context.

    `user` is the `user` entry: `token`, `tokenFile`, or `client-certificate` and `client-key`.
    """
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "lab", "cluster": {"server": server, "certificate-authority": str(ca)}}
        ],
        "users": [{"name": "lab", "user": dict(user)}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
        "current-context": "lab",
    }


def write(path: Path, server: str, ca: Path, user: Mapping[str, str]) -> Path:
    """Write it, readable by its user only, and return the path."""
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(render(server, ca, user), sort_keys=False))
    return path
