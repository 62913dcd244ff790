"""Memory of a NUMA node goes and comes back while the enforcer runs.

Not collected on the host: test_in_virtual_machine.py runs this.
"""

from pathlib import Path

from numapin_enforcer.hardware.hotplug import Machine

MEMORY = Path("/sys/devices/system/memory")
BLOCK_BYTES = int((MEMORY / "block_size_bytes").read_text(), 16)


def numa_node_of(block: Path) -> int:
    (link,) = block.glob("node*")
    return int(link.name.removeprefix("node"))


def offline() -> Path:
    """Take a block offline that the kernel can empty, of the highest address if it can."""
    for block in sorted(MEMORY.glob("memory*"), key=lambda one: -int(one.name[6:])):
        try:
            (block / "state").write_text("offline")
        except OSError:
            continue
        return block
    raise AssertionError("the kernel can empty no block of memory")


def sizes(machine: Machine) -> dict[int, int]:
    return {one.id: one.memory_bytes for one in machine.topology.numa_nodes}


def test_a_block_of_memory_that_goes_or_comes_is_noticed_at_a_resync() -> None:
    machine = Machine(Path("/sys"), Path("/proc"))
    before = sizes(machine)
    assert not machine.rescan(pages=True)
    block = offline()
    node = numa_node_of(block)
    try:
        assert machine.rescan(pages=True)
        assert before[node] - sizes(machine)[node] == BLOCK_BYTES
    finally:
        (block / "state").write_text("online")
    assert machine.rescan(pages=True)
    assert sizes(machine) == before
