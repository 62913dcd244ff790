"""The options of a chaos run with moves, and the lab that it must not touch."""

from pathlib import Path

import pytest

from numapin_campaigns.__main__ import build_parser
from numapin_campaigns.moves.command import MOVES
from numapin_campaigns.moves.plan import make_moves_plan
from numapin_lab.errors import LabError
from numapin_lab.lifecycle import LabFolder
from numapin_lab.state import LabState


def test_the_options_decide_the_plan() -> None:
    chosen = build_parser().parse_args(["chaos", "--moves", "--seed", "7", "--rounds", "9"])
    assert MOVES.planned(chosen) == make_moves_plan(7, 9)
    usual = build_parser().parse_args(["chaos", "--moves"])
    assert len(MOVES.planned(usual).rounds) == 20


@pytest.mark.parametrize("others", [["--spare-enforcer"], ["--rounds", "7"]])
def test_options_that_do_not_go_with_it_are_refused(others: list[str]) -> None:
    with pytest.raises(LabError, match=others[0]):
        MOVES.planned(build_parser().parse_args(["chaos", "--moves", *others]))


def test_a_lab_without_a_virtual_machine_is_left_alone(tmp_path: Path) -> None:
    state = tmp_path / "lab.json"
    LabState.new({}).write(state)
    with pytest.raises(LabError, match="is this machine"):
        MOVES.carry_out(LabFolder(tmp_path, vm=True), make_moves_plan(1, 8), keep=False)
    assert state.exists()
