"""Documents for scripts."""

import json
from typing import Any

import yaml


def document(content: dict[str, Any], output: str) -> str:
    """A document for scripts: `json` or `yaml`."""
    if output == "json":
        return json.dumps(content, indent=2) + "\n"
    return str(yaml.safe_dump(content, sort_keys=False, width=100))
