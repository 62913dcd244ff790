"""`python -m numapin_campaigns`."""

import pytest

from numapin_campaigns.__main__ import COMMANDS, main


@pytest.mark.parametrize("name", COMMANDS)
def test_every_campaign_describes_its_options(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    shown = capsys.readouterr().out
    assert COMMANDS[name].meaning.split()[0] in shown
    assert ("--dir" in shown) == COMMANDS[name].has_lab


def test_a_search_without_a_find_ends_with_status_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["histories", "--kind", "failures", "--from", "5", "--count", "2"]) == 0
    assert "up to seed 6" in capsys.readouterr().out
