"""Edge: whether the kubelet of this node pins containers itself."""

import json
from pathlib import Path
from typing import Final

STATE_FILE: Final = "cpu_manager_state"
STATIC: Final = "static"


def static_policy_conflict(kubelet_state_dir: Path) -> str:
    """Why numapin must not act beside this kubelet, or nothing.

    The kubelet's CPU manager keeps its policy in a checkpoint; one that is not there or does not
    parse says nothing.
    Source: kubelet pkg/kubelet/cm/cpumanager/state, `CPUManagerCheckpoint`.
    """
    path = kubelet_state_dir / STATE_FILE
    try:
        state = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return ""
    if not isinstance(state, dict) or state.get("policyName") != STATIC:
        return ""
    return (
        f"the kubelet's CPU manager pins containers itself (policy static in {path}); set "
        "cpuManagerPolicy to none, remove that file and restart the kubelet, or select this node "
        "by no CpuPolicy"
    )


def checkpoint_replaced(kubelet_state_dir: Path) -> str:
    """Why only a restart shows what the kubelet says now, or nothing.

    The kubelet replaces its checkpoint instead of writing into it. A pod that mounts that one file
    goes on seeing the old one, which no folder holds any more, until its container is started anew.
    """
    path = kubelet_state_dir / STATE_FILE
    try:
        links = path.stat().st_nlink
    except OSError:
        return ""
    return "" if links else f"the kubelet has replaced {path}; only a restart shows the new one"
