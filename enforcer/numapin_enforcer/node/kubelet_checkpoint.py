"""The kubelet's CPU manager checkpoint: does the kubelet pin containers itself?"""

import json
from pathlib import Path
from typing import Final

from numapin_daemon import atomic_file

STATE_FILE: Final = "cpu_manager_state"
STATIC: Final = "static"

MOST_BYTES: Final = 16 * 1024 * 1024
"""Far more than a checkpoint of all containers of a node takes."""


def static_policy_conflict(kubelet_state_dir: Path) -> str:
    """Why numapin must not act beside this kubelet; empty if it may.

    The checkpoint names the policy of the kubelet's CPU manager. One that does not exist or cannot
    be parsed is no conflict.
    Source: kubelet pkg/kubelet/cm/cpumanager/state, `CPUManagerCheckpoint`.
    """
    path = kubelet_state_dir / STATE_FILE
    try:
        state = json.loads(atomic_file.read(path, most_bytes=MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return ""
    if not isinstance(state, dict) or state.get("policyName") != STATIC:
        return ""
    return (
        f"the kubelet's CPU manager pins containers itself (policy static in {path}); set "
        "cpuManagerPolicy to none, remove that file and restart the kubelet, or exclude this node "
        "from every CpuPolicy"
    )


def checkpoint_replaced(kubelet_state_dir: Path) -> str:
    """Why only a restart shows the kubelet's newest checkpoint; empty if none is needed.

    The kubelet replaces its checkpoint instead of writing into it. A pod that mounts only that file
    still sees the old one, which has no folder entry any more, until its container is restarted.
    """
    path = kubelet_state_dir / STATE_FILE
    try:
        links = path.stat().st_nlink
    except OSError:
        return ""
    return "" if links else f"the kubelet has replaced {path}; only a restart shows the new one"
