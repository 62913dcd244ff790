"""Label selectors of `-l`, as kubectl reads them."""

import pytest

from numapin_cli.fleet.label_selector import Selector
from numapin_cli.subcommand import UsageError

LABELS = {"pool": "fast", "zone": "a", "example.com/rack": ""}


@pytest.mark.parametrize(
    ("text", "is_selected"),
    [
        ("", True),
        ("  ", True),
        ("pool=fast", True),
        ("pool==fast", True),
        ("pool = slow", False),
        ("pool!=slow", True),
        ("pool!=fast", False),
        ("team!=a", True),
        ("zone in (a,b)", True),
        ("zone in (b, c)", False),
        ("zone notin (b, c),pool=fast", True),
        ("team notin (a)", True),
        ("zone notin (a)", False),
        ("pool", True),
        ("team", False),
        ("!team", True),
        ("! pool", False),
        ("example.com/rack=", True),
        ("example.com/rack,pool in (fast),!team", True),
        ("pool=fast,zone=b", False),
    ],
)
def test_a_selector_selects_as_kubernetes_does(text: str, is_selected: bool) -> None:
    assert Selector.parse(text).selects(LABELS) is is_selected


@pytest.mark.parametrize("text", ["pool=fast,", "=a", "pool in a", "a>1", "pool=fast slow", "!"])
def test_what_is_no_selector_is_named_with_the_forms(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no label selector; write key=value"):
        Selector.parse(text)
