"""Edge: whether the kubelet of this node pins containers itself."""

import json
from pathlib import Path
from typing import Final

STATE_FILE: Final = "cpu_manager_state"
STATIC: Final = "static"


def static_policy(kubelet_state_dir: Path) -> str:
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
