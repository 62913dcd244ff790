"""The lab's scheduler with the plug-in is configured as the documentation says."""

import re
from pathlib import Path
from typing import Any

import yaml

from numapin_lab.controlplane.servers import ControlPlane, ControlPlanePorts
from numapin_lab.controlplane.topology_scheduler import PLUGIN, TopologyScheduler

PAGE = Path(__file__).parents[4] / "docs" / "scheduling.md"


def test_its_configuration_is_that_of_the_page(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(apiVersion: kubescheduler.*?)```", PAGE.read_text(), re.DOTALL)
    page: dict[str, Any] = yaml.safe_load(text)
    plane = ControlPlane(tmp_path, ControlPlanePorts(1, 2, 3), {})
    found = TopologyScheduler(plane).configuration()
    (shown,), (used,) = page["profiles"], found["profiles"]
    assert shown["plugins"] == used["plugins"]
    assert [one["name"] for one in shown["pluginConfig"]] == [PLUGIN]
    assert shown["pluginConfig"] == used["pluginConfig"]
    assert page["apiVersion"] == found["apiVersion"]
