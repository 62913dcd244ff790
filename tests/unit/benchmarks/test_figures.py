"""Figures of several runs, in one row and in JSON."""

import math

from numapin_benchmarks.figures import Figure, in_runs


def test_a_figure_sums_up_its_runs() -> None:
    figure = Figure("it", "ms", [[3.0, 1.0], [2.0, math.inf]], "budget 50")
    found = figure.to_json()
    assert found["summary"] == {"count": 4, "min": 1.0, "p50": 2.5, "p99": None, "max": None}
    assert found["runs"] == [[3.0, 1.0], [2.0, None]]
    assert " ".join(figure.row().split()) == "it, ms 4 1 2.5 never never 2 - never budget 50"


def test_values_are_split_into_runs_in_their_order() -> None:
    assert in_runs([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4, 5]]
    assert [len(run) for run in in_runs(list(range(200)), 5)] == [40] * 5
