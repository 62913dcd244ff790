"""The dashboard for Grafana asks for metrics that exist, and its panels do not overlap."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from numapin_operator.telemetry.table import METRICS as OF_OPERATOR
from support.values.promql import OF_TARGETS, groupings, metrics, selectors, unknown_parts

ROOT = Path(__file__).parents[3]
FILE = ROOT / "charts" / "numapin" / "files" / "dashboard" / "numapin.json"
DASHBOARD: dict[str, Any] = json.loads(FILE.read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
VARIABLES = {one["name"] for one in DASHBOARD["templating"]["list"]}
BY_GRAFANA = {"__rate_interval"}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS = 24


def queries() -> Iterator[tuple[str, str, str]]:
    """Title of the panel, query and legend."""
    for panel in PANELS:
        for one in panel.get("targets", ()):
            yield panel["title"], one["expr"], one["legendFormat"]


by_query = pytest.mark.parametrize(("panel", "query", "legend"), list(queries()))


@by_query
def test_each_query_names_metrics_and_labels_that_exist(
    panel: str, query: str, legend: str
) -> None:
    assert unknown_parts(query, variables=VARIABLES | BY_GRAFANA) == set()


@by_query
def test_each_legend_shows_what_the_query_groups_by(panel: str, query: str, legend: str) -> None:
    assert set(re.findall(r"\{\{(\w+)\}\}", legend)) == groupings(query) - {"le"}


@by_query
def test_each_query_is_restricted_by_the_variables(panel: str, query: str, legend: str) -> None:
    for name, matchers in selectors(query):
        chosen = {label: value[1:] for label, value in matchers.items() if value[0] == "$"}
        assert all(label == variable for label, variable in chosen.items()), name
        assert {"cluster", "job"} <= chosen.keys(), name
        of_nodes = not any(one in OF_OPERATOR for one in metrics()[name])
        assert ("node" in chosen) == of_nodes, name


def test_prometheus_can_read_each_query(tmp_path: Path) -> None:
    rules = [
        {"record": f"query{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, (_, query, _) in enumerate(queries())
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run(
        ["promtool", "check", "rules", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_metric_but_those_of_each_container_is_shown_or_left_out_on_purpose() -> None:
    shown = {one.name for _, query, _ in queries() for name in _names(query) for one in name}
    everything = {one.name for series in metrics().values() for one in series}
    left_out = {name for name in everything - shown if not name.startswith("kubelet_")}
    assert left_out == {
        "numapin_build_info",
        "numapin_container_overlap_seconds_total",
        "numapin_container_run_delay_seconds_total",
        "numapin_enforces",
        "numapin_exclusive_cache_occupancy_bytes",
        "numapin_exclusive_memory_traffic_bytes_total",
        "numapin_numa_allocatable",
        "numapin_otlp_refused",
        "numapin_pass_age_seconds",
        "numapin_policies",
        "process_open_fds",
        "process_start_time_seconds",
    }


def _names(query: str) -> Iterator[list[Any]]:
    for name, _ in selectors(query):
        yield metrics()[name]


def test_panels_stand_in_the_grid_and_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in PANELS:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert cells
        assert not cells & taken, panel["title"]
        assert all(0 <= x < COLUMNS for x, _ in cells), panel["title"]
        taken |= cells
    bottom = max(y for _, y in taken) + 1
    assert len(taken) == COLUMNS * bottom, "there is a hole"


def test_each_panel_has_an_id_a_source_and_says_what_it_shows() -> None:
    ids = [panel["id"] for panel in PANELS]
    assert len(set(ids)) == len(ids)
    for panel in PANELS:
        if panel["type"] == "row":
            continue
        assert panel["datasource"] == SOURCE
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        letters = [one["refId"] for one in panel["targets"]]
        assert len(set(letters)) == len(letters)
        assert all(one["datasource"] == SOURCE for one in panel["targets"])


def test_a_dashboard_of_all_jobs_is_of_numapin_s_jobs_alone() -> None:
    """The names process_* are those of every program: .* would show all of them."""
    variables = {one["name"]: one for one in DASHBOARD["templating"]["list"]}
    assert variables.keys() == {"datasource", "cluster", "job", "node"}
    assert "allValue" not in variables["job"]
    for name in ("cluster", "node"):
        assert variables[name]["allValue"] == ".*", "the label may be missing"
    for name in ("cluster", "job", "node"):
        query = variables[name]["query"]["query"]
        assert re.fullmatch(rf"label_values\(.+, {name}\)", query)
        assert name in OF_TARGETS


def test_the_annotation_shows_alerts_of_numapin() -> None:
    (alerts,) = DASHBOARD["annotations"]["list"]
    (found,) = selectors(alerts["target"]["expr"])
    assert found[0] == "ALERTS"
    assert found[1]["alertname"] == "Numapin.*"


def test_mistakes_in_queries_are_found() -> None:
    wrong = {
        "sum(numapin_leeds)": {"numapin_leeds"},
        'numapin_leads{state="x"}': {"numapin_leads{state}"},
        "sum by (reson) (numapin_refused)": {"reson"},
        'rate(numapin_drifts_total{cause=~"Intrusion|Wind"}[5m])': {"Wind"},
        'numapin_free_cpus{node=~"$nodes"}': {"nodes"},
        "numapin_plan_seconds": {"numapin_plan_seconds"},
        "sum by (le) (rate(numapin_plan_seconds_bucket[5m])) > 1 and on (job) up": set[str](),
    }
    assert {query: unknown_parts(query) for query in wrong} == wrong
