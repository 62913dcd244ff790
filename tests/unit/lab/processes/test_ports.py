"""Free TCP ports."""

import pytest

from numapin_lab.processes.ports import choose


def test_ports_differ_and_taken_ones_are_passed_over() -> None:
    ports = choose(500, free=lambda port: port % 2 == 0)
    assert len(set(ports)) == 500
    assert all(20000 <= port < 32000 and port % 2 == 0 for port in ports)


def test_too_few_free_ports_are_reported() -> None:
    with pytest.raises(OSError, match="fewer than 2 free TCP ports"):
        choose(2, free=lambda port: port == 20000)
