"""The scheduler with the plug-in NodeResourceTopologyMatch, as the cluster's scheduler."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numapin_lab.components.build import provide
from numapin_lab.components.catalog import SCHEDULER_MODULE, TOPOLOGY_SCHEDULER
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.processes.daemons import Daemon, stop

CRD = SCHEDULER_MODULE / "crd.yaml"
PLUGIN = "NodeResourceTopologyMatch"
STOP_SECONDS = 5.0


@dataclass(frozen=True)
class TopologyScheduler:
    """The scheduler of `plane`, logged in as the administrator; `strategy` is how it scores."""

    plane: ControlPlane
    strategy: str = "LeastAllocated"
    resync_seconds: int = 5

    @property
    def folder(self) -> Path:
        """Its configuration, log and pid."""
        return self.plane.folder / "topology-scheduler"

    def daemon(self) -> Daemon:
        """The process; it is built if it is not there."""
        program = provide([TOPOLOGY_SCHEDULER.name])[TOPOLOGY_SCHEDULER.name].path
        self.folder.mkdir(parents=True, exist_ok=True)
        configuration = self.folder / "configuration.json"
        configuration.write_text(json.dumps(self.configuration()))
        command = (str(program), f"--config={configuration}", "--secure-port=0", "-v=2")
        return Daemon("topology-scheduler", self.folder, command, self.plane.folder)

    def configuration(self) -> dict[str, Any]:
        """As docs/scheduling.md has it; pods need not name the scheduler."""
        arguments = {
            "cacheResyncPeriodSeconds": self.resync_seconds,
            "cache": {
                "foreignPodsDetect": "OnlyExclusiveResources",
                "informerMode": "Shared",
                "resyncMethod": "Autodetect",
            },
            "scoringStrategy": {"type": self.strategy},
        }
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(self.plane.kubeconfig)},
            "profiles": [
                {
                    "schedulerName": "default-scheduler",
                    "plugins": {"multiPoint": {"enabled": [{"name": PLUGIN}]}},
                    "pluginConfig": [{"name": PLUGIN, "args": arguments}],
                }
            ],
        }

    def start(self) -> None:
        """Start it."""
        self.daemon().start()

    def stop(self) -> None:
        """End it."""
        if (pid := self.daemon().pid()) is not None:
            stop(pid, STOP_SECONDS)
