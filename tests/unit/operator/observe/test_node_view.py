"""What a Node's status says that its kubelet keeps back."""

import pytest

from numapin_operator.observe.records import NodeView
from numapin_operator.placement import SystemReservation

Amounts = dict[str, str]


def decoded(capacity: Amounts, allocatable: Amounts) -> NodeView:
    status = {"capacity": capacity, "allocatable": allocatable}
    return NodeView.decode({"metadata": {"name": "n", "uid": "u"}, "status": status})


@pytest.mark.parametrize(
    ("capacity", "allocatable", "memory"),
    [
        pytest.param({"memory": "16Gi"}, {"memory": "12Gi"}, {"memory": 4 << 30}, id="memory"),
        pytest.param(
            {"memory": "16Gi", "hugepages-2Mi": "2Gi", "hugepages-1Gi": "0"},
            {"memory": "12Gi", "hugepages-2Mi": "1Gi", "hugepages-1Gi": "0"},
            {"hugepages-2Mi": 1 << 30, "memory": 2 << 30},
            id="huge-pages-are-taken-off-allocatable-memory-too",
        ),
        pytest.param({"memory": "16Gi"}, {}, {}, id="not-reported-yet"),
        pytest.param({}, {"memory": "16Gi"}, {}, id="without-capacity"),
        pytest.param({"memory": "1Gi"}, {"memory": "2Gi"}, {}, id="more-than-there-is"),
    ],
)
def test_memory_that_is_kept_back(
    capacity: Amounts, allocatable: Amounts, memory: dict[str, int]
) -> None:
    node = decoded({"cpu": "8"} | capacity, {"cpu": "7500m"} | allocatable)
    assert node.system == SystemReservation(500, tuple(sorted(memory.items())))
    assert node.problem is None


def test_an_amount_that_cannot_be_read_stalls_the_node_and_says_which() -> None:
    assert "'much' is not a quantity" in str(decoded({"memory": "much"}, {}).problem)
