"""The alerts, by promtool: each fires where it must, and a restart or a roll-out fires none."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.values.promql import unknown_parts

ROOT = Path(__file__).parents[3]
RULES = ROOT / "charts" / "numapin" / "files" / "numapin.rules.yaml"
MANIFEST = ROOT / "manifests" / "components" / "alerts" / "prometheusrule.yaml"
TESTS = Path(__file__).with_name("alerts.yaml")
RUNBOOKS = ROOT / "docs" / "runbooks.md"
ALERTS: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
NAMES = [one["alert"] for one in ALERTS]
by_name = pytest.mark.parametrize("alert", ALERTS, ids=NAMES)


def promtool(*arguments: str | Path) -> tuple[int, str]:
    command = ["promtool", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_prometheus_takes_the_rules() -> None:
    status, said = promtool("check", "rules", "--lint=all", "--lint-fatal", RULES)
    assert (status, f"{len(ALERTS)} rules found" in said) == (0, True), said


def test_each_alert_fires_where_it_must() -> None:
    status, said = promtool("test", "rules", TESTS)
    assert status == 0, said


def cases_about(alert: str) -> list[dict[str, Any]]:
    """The tests of one alert; none of them has cases of another one."""
    tests: list[dict[str, Any]] = yaml.safe_load(TESTS.read_text())["tests"]
    return [one for one in tests if one["alert_rule_test"][0]["alertname"] == alert]


@by_name
def test_each_alert_is_tested_both_ways(alert: dict[str, Any]) -> None:
    cases = [case for test in cases_about(alert["alert"]) for case in test["alert_rule_test"]]
    assert {case["alertname"] for case in cases} == {alert["alert"]}
    assert {bool(case["exp_alerts"]) for case in cases} == {True, False}


@by_name
@pytest.mark.parametrize("broken", [{"for": "0s"}, {"for": "24h"}], ids=["at once", "never"])
def test_the_cases_notice_a_wrong_delay(
    alert: dict[str, Any], broken: dict[str, Any], tmp_path: Path
) -> None:
    changed = tmp_path / RULES.name
    changed.write_text(yaml.safe_dump({"groups": [{"name": "one", "rules": [alert | broken]}]}))
    tests = {
        "rule_files": [RULES.name],
        "evaluation_interval": "1m",
        "tests": cases_about(alert["alert"]),
    }
    (tmp_path / TESTS.name).write_text(yaml.safe_dump(tests))
    status, said = promtool("test", "rules", tmp_path / TESTS.name)
    assert status == 1, said
    assert f"alertname: {alert['alert']}" in said


@by_name
def test_each_alert_uses_metrics_and_labels_that_exist(alert: dict[str, Any]) -> None:
    assert unknown_parts(alert["expr"], NAMES) == set()


@by_name
def test_each_alert_says_what_to_do(alert: dict[str, Any]) -> None:
    assert alert["labels"].keys() == {"severity"}
    assert alert["labels"]["severity"] in {"info", "warning", "critical"}
    assert alert["annotations"].keys() == {"summary", "description", "runbook_url"}
    page, _, title = alert["annotations"]["runbook_url"].partition("#")
    assert (page, title) == ("docs/runbooks.md", alert["alert"].lower())


def test_the_runbook_has_a_section_for_each_alert_and_no_other() -> None:
    sections = re.split(r"^## ", RUNBOOKS.read_text(), flags=re.MULTILINE)[1:]
    assert [one.partition("\n")[0] for one in sections] == NAMES
    parts = ["Meaning", "Effect", "Look", "Act", "False alarm"]
    for one in sections:
        assert re.findall(r"^\*\*([\w ]+)\.\*\*", one, re.MULTILINE) == parts, one


def test_what_is_made_of_the_rules_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "charts" / "generate"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    manifest = yaml.safe_load(MANIFEST.read_text())
    assert manifest["spec"] == yaml.safe_load(RULES.read_text())
