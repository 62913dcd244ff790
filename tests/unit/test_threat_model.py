"""The threat model lists each right that the manifests give, and no other."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text()
MANIFESTS = ROOT / "manifests"
FILES = sorted([*MANIFESTS.glob("base/*.yaml"), *MANIFESTS.glob("components/*/*.yaml")])
PROGRAMS = {"numapin-enforcer": "enforcer", "numapin-standby": "standby"}

Row = tuple[str, ...]


def rows(name: str) -> list[Row]:
    """The cells of a table of the page, without its reasons, which no row lacks."""
    text = PAGE.partition(f"<!-- {name}: begin -->\n")[2].partition(f"<!-- {name}: end -->")[0]
    table = [tuple(cell.strip() for cell in line[1:-1].split("|")) for line in text.splitlines()]
    assert all(row[-1] for row in table[2:]), "a right without a reason"
    return [row[:-1] for row in table[2:]]


def documents(files: list[Path] = FILES) -> Iterator[Any]:
    for file in files:
        yield from (one for one in yaml.safe_load_all(file.read_text()) if one)


def grants() -> Iterator[Row]:
    """Each rule of each role, as the table writes it."""
    for role in documents():
        if role.get("kind") not in {"Role", "ClusterRole"}:
            continue
        for rule in role["rules"]:
            assert rule.keys() <= {"apiGroups", "resources", "verbs", "resourceNames"}
            who = f"{role['kind']} {role['metadata']['name']}"
            groups = ", ".join(group or "core" for group in rule["apiGroups"])
            resources = ", ".join([*rule["resources"], *_shortened(rule.get("resourceNames", []))])
            named = resources.replace(", ", " ") if "resourceNames" in rule else resources
            yield who, groups, named, ", ".join(rule["verbs"])


def _shortened(names: list[str]) -> list[str]:
    """A row of numbered names by its ends."""
    numbers = [re.fullmatch(r"(.*-)(\d+)", name) for name in names]
    if len(names) < 2:
        return names
    found = [one for one in numbers if one]
    assert len(found) == len(names)
    assert {one[1] for one in found} == {found[0][1]}
    assert [int(one[2]) for one in found] == list(range(int(found[0][2]), len(found) + 1))
    return [f"{names[0]} to {found[-1][2]}"]


def node_rights() -> Iterator[Row]:
    """What the DaemonSets have of their node, and what components add."""
    for one in documents():
        if one.get("kind") == "DaemonSet":
            pod = one["spec"]["template"]["spec"]
            (container,) = pod["containers"]
            program = PROGRAMS[one["metadata"]["name"]]
            yield from _mounted(program, pod["volumes"], container["volumeMounts"])
            yield from (
                (program, right, "")
                for right in container["securityContext"]["capabilities"]["add"]
            )
            hosts = {key for key in pod if key.startswith("host")}
            yield from ((program, key, "") for key in hosts if pod[key])
        for patch in one.get("patches", ()):
            yield from _added(patch)


def _added(patch: Any) -> Iterator[Row]:
    """The rights in a JSON patch of a component."""
    changes = yaml.safe_load(patch["patch"])
    added = [one for one in changes if isinstance(one, dict) and one.get("op") == "add"]
    at = {
        end: [one["value"] for one in added if one["path"].endswith(f"/{end}/-")]
        for end in ("volumes", "volumeMounts", "capabilities/add")
    }
    if any(at.values()):
        program = PROGRAMS[patch["target"]["name"]]
        yield from _mounted(program, at["volumes"], at["volumeMounts"])
        yield from ((program, right, "") for right in at["capabilities/add"])


def _mounted(program: str, volumes: Any, mounts: Any) -> Iterator[Row]:
    only_read = {one["name"]: one.get("readOnly", False) for one in mounts}
    for volume in volumes:
        if path := volume.get("hostPath", {}).get("path"):
            yield program, path, "read" if only_read[volume["name"]] else "write"


def test_each_right_in_the_api_has_its_row_and_its_reason() -> None:
    assert sorted(rows("rights")) == sorted(grants())


def test_each_right_on_a_node_has_its_row_and_its_reason() -> None:
    assert sorted(rows("host")) == sorted(node_rights())


def test_no_role_has_a_wildcard() -> None:
    assert not [row for row in grants() if any("*" in cell for cell in row)]


def test_the_standby_has_no_rights() -> None:
    bound = {
        (subject["name"], one["roleRef"]["name"])
        for one in documents()
        if one.get("kind") in {"RoleBinding", "ClusterRoleBinding"}
        for subject in one["subjects"]
    }
    assert {role for account, role in bound if account == "numapin-standby"} == {"numapin-nodes"}
    (standby,) = (one for one in documents([MANIFESTS / "base/standby.yaml"]) if "spec" in one)
    assert standby["spec"]["template"]["spec"]["automountServiceAccountToken"] is False


def test_each_role_is_bound_to_its_account_alone() -> None:
    for one in documents():
        if one.get("kind") in {"RoleBinding", "ClusterRoleBinding"}:
            accounts = {subject["name"] for subject in one["subjects"]}
            role = one["roleRef"]["name"]
            if role == "numapin-nodes":
                assert accounts == {"numapin-enforcer", "numapin-standby"}
            else:
                (account,) = accounts
                assert role.startswith(account)
