import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from numapin_api.hardware.compact import class_name
from numapin_api.hardware.machine_file import machine_document, parse_machine
from numapin_api.topology import DeviceName, PciDevice, Topology
from numapin_cli import main as cli
from numapin_cli.drawing.machine import draw_machine
from numapin_enforcer.hardware.discovery import discover


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["numapin"])
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


def _draw(root: Path) -> str:
    console = Console(width=80, highlight=False, record=True, force_terminal=False)
    console.print(draw_machine(discover(root / "sys", root / "proc")))
    return "\n".join(line.rstrip() for line in console.export_text().splitlines())


def test_json_is_a_machine_that_reads_back_as_discovered(
    captured_machine: str, captured_machines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = captured_machines / captured_machine
    assert cli.main(["topology", "--root", str(root), "-o", "json"]) == 0
    answer = capsys.readouterr()
    discovered = discover(root / "sys", root / "proc")
    assert machine_document(parse_machine(answer.out, "stdout")) == machine_document(discovered)
    assert answer.err.splitlines() == [f"warning: {text}" for text in discovered.warnings]


def test_json_has_the_fields_of_a_machine(
    captured_machines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = captured_machines / "haswell-2s-offline-cpu0-node0"
    cli.main(["topology", "--root", str(root), "-o", "json"])
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["cpus", "numaNodes", "offlineCPUs", "isolatedCPUs", "pci"]
    assert document["offlineCPUs"] == "0-3,21-23"
    root = captured_machines / "skylake-2s2n-smt2-pci"
    cli.main(["topology", "--root", str(root), "-o", "json"])
    document = json.loads(capsys.readouterr().out)
    assert document["pci"][0] == {"address": "0000:17:00.0", "class": "0x0604", "numaNode": 0}


def test_text_fits_80_columns_without_colours_and_shows_each_cpu(
    captured_machine: str, captured_machines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = captured_machines / captured_machine
    assert cli.main(["topology", "--root", str(root)]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown
    words = shown.replace("[", " ").replace("]", " ").split()
    topology = discover(root / "sys", root / "proc")
    for cpus in topology.core_cpus.values():
        assert str(cpus) in words


def test_sockets_hold_numa_nodes_with_their_caches(captured_machines: Path) -> None:
    assert _draw(captured_machines / "skylake-2s2n-smt2-pci").startswith(
        """\
32 CPUs on 16 cores of 2 threads, 2 sockets, 2 NUMA nodes, 92.9 GiB
╭─ Socket 0  16 CPUs on 8 cores of 2 threads ──────────────────────────────────╮
│ NUMA node 0  16 CPUs, 45.7 GiB, huge pages 2048 x 2Mi                        │
│   L3 0  [0,16] [1,17] [2,18] [3,19] [4,20] [5,21] [6,22] [7,23]              │
╰──────────────────────────────────────────────────────────────────────────────╯
"""
    )


def test_network_interfaces_and_disks_are_named_beside_their_numa_node(
    captured_machines: Path,
) -> None:
    root = captured_machines / "skylake-2s2n-smt2-pci"
    whole = discover(root / "sys", root / "proc")
    names = tuple(DeviceName(f"block/sd{one}", ("0000:1a:00.0",)) for one in "abcdef")
    nic = DeviceName("net/eno1", ("0000:60:00.1",))
    for width in (80, 120):
        console = Console(width=width, highlight=False, record=True, force_terminal=False)
        console.print(draw_machine(replace(whole, names=(nic, *names))))
        shown = " ".join(console.export_text().split())
        assert "NUMA node 0 2 Ethernet 0000:60:00.1 net/eno1 0000:60:00.0 2 InfiniBand" in shown
        assert "0000:1a:00.0 block/sda block/sdb block/sdc block/sdd and 2 more" in shown


def test_a_numa_node_with_several_sockets_is_the_outer_box(captured_machines: Path) -> None:
    shown = _draw(captured_machines / "s390-books-nonuma")
    assert "╭─ NUMA node 0  20 CPUs, 2 GiB ─" in shown
    assert "│ socket 1    3 4 5 6 " in shown


@pytest.mark.parametrize(
    ("machine", "lines"),
    [
        (
            "knl-snc4-mcdram",
            [
                "  NUMA node 4  2 GiB  distance 31 from 1",
                "  4 41 31 41 41 10 41 41 41",
            ],
        ),
        ("magnycours-4s8n-sparse-nodes", ["      0  1  2 33 34 45 72 73"]),
        ("haswell-2s-offline-cpu0-node0", ["  offline  0-3,21-23"]),
        (
            "power9-smt4-gpu-nodes",
            [
                "32 CPUs on 8 cores of 4 threads, 2 sockets, 8 NUMA nodes, 251.6 GiB and 90 GiB",
                "  NUMA node 250  15 GiB  distance 80 from 0,8  on a GPU, not for containers",
                "  NUMA node 8  3  display / GPU  0007:00:00.0 0035:04:00.0 0035:05:00.0",
            ],
        ),
        ("sandybridge-2s2n-many-pci", ["  no NUMA node"]),
        ("harpertown-overlapping-nodes", ["  !  devices/system/node/node[1-7]/cpumap lists CPUs"]),
    ],
)
def test_what_is_particular_about_a_machine_is_shown(
    machine: str, lines: list[str], captured_machines: Path
) -> None:
    shown = _draw(captured_machines / machine)
    for line in lines:
        assert any(one.startswith(line) for one in shown.splitlines()), shown


def test_many_numa_nodes_have_distances_as_lists(captured_machines: Path) -> None:
    root = captured_machines / "qemu-4p8d16n-smt2"
    qemu = discover(root / "sys", root / "proc")
    document = machine_document(qemu)
    for node in document["numaNodes"]:
        node["distances"].append(40)
    document["numaNodes"].append({"id": 99, "memoryBytes": 1, "distances": [40] * 16 + [10]})
    console = Console(width=80, record=True, file=sys.stderr)
    console.print(draw_machine(parse_machine(json.dumps(document), "m")))
    assert "  node 3   10: 3  20: 0-2,4-15  40: 99" in console.export_text()


def test_only_locality_matters_for_addresses() -> None:
    bridge, nic = PciDevice("0000:00:01.0", "0604", 0), PciDevice("0000:00:02.0", "0200", 0)
    console = Console(width=80, record=True, file=sys.stderr)
    console.print(draw_machine(Topology((), (), pci=(bridge, nic))))
    shown = console.export_text()
    assert "0000:00:02.0" in shown
    assert "0000:00:01.0" not in shown
    assert "bridge" in shown


@pytest.mark.parametrize(
    ("pci_class", "name"),
    [("0108", "NVMe"), ("0180", "storage"), ("0302", "display / GPU"), ("ffff", "0xffff")],
)
def test_class_names(pci_class: str, name: str) -> None:
    assert class_name(pci_class) == name


def test_root_without_sys_is_an_error_with_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["topology", "--root", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"numapin: error: --root {tmp_path}: there is no folder sys in it;")
    assert "give the folder that holds the machine's sys and proc" in error


def test_root_that_cannot_be_read_is_an_error_with_the_remedy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["topology", "--root", "x" * 5000]) == 1
    assert "cannot be read (File name too long); give a folder" in capsys.readouterr().err


def test_machine_without_cpus_is_an_error_with_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sys/devices/system/cpu").mkdir(parents=True)
    assert cli.main(["topology", "--root", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert f"{tmp_path}/sys/devices/system/cpu: is absent, empty or closed to this user" in error
    assert "give the path of the machine's /sys" in error


@pytest.mark.parametrize("flags", [["-o", "yaml"], ["--rot", "/"], ["extra"]])
def test_wrong_flags_exit_with_2(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["topology", *flags])
    assert ended.value.code == 2
    assert "usage: numapin" in capsys.readouterr().err


def test_this_machine_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["topology"]) == 0
    assert "NUMA node 0" in capsys.readouterr().out
