"""The hardware is discovered again when CPUs come or go."""

from pathlib import Path

from numapin_enforcer.hardware.hotplug import Machine


def test_a_cpu_that_goes_offline_changes_the_topology(tmp_path: Path) -> None:
    cpu = tmp_path / "devices/system/cpu"
    for number in range(2):
        (cpu / f"cpu{number}").mkdir(parents=True)
    (cpu / "online").write_text("0-1\n")
    machine = Machine(tmp_path, Path("/proc"))
    assert str(machine.topology.online) == "0-1"
    assert not machine.rescan()
    (cpu / "online").write_text("0\n")
    assert machine.rescan()
    assert str(machine.topology.online) == "0"
    assert not machine.rescan()
