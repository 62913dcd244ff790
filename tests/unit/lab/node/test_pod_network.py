"""What containerd finds of a network for pods."""

import ipaddress
import json
from pathlib import Path

import pytest

from numapin_lab.errors import MissingError
from numapin_lab.node.pod_network import PLUGINS, POD_RANGE, PodNetwork, bridge, find_plugins


def test_without_a_bridge_the_plug_in_is_a_script_of_the_lab(tmp_path: Path) -> None:
    plugins = PodNetwork().write(tmp_path)
    (file,) = (tmp_path / "networks").iterdir()
    (plugin,) = json.loads(file.read_text())["plugins"]
    assert (plugins / plugin["type"]).stat().st_mode & 0o111


def test_a_bridge_gives_each_pod_an_address_and_a_way_to_services() -> None:
    (plugin,) = bridge()["plugins"]
    assert {plugin["type"], plugin["ipam"]["type"]} == set(PLUGINS)
    assert plugin["ipam"]["ranges"] == [[{"subnet": POD_RANGE}]]
    assert plugin["ipam"]["routes"] == [{"dst": "0.0.0.0/0"}]
    assert len(plugin["bridge"]) < 16  # IFNAMSIZ
    assert not ipaddress.ip_network(POD_RANGE).is_global


def test_plug_ins_are_found_where_all_of_them_are(tmp_path: Path) -> None:
    some, every = tmp_path / "some", tmp_path / "every"
    for folder, names in ((some, PLUGINS[:1]), (every, PLUGINS)):
        folder.mkdir()
        for name in names:
            (folder / name).touch()
    assert find_plugins((some, every)) == every
    with pytest.raises(MissingError, match=r"apt-get install .*containernetworking-plugins"):
        find_plugins((some,))
