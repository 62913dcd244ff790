"""What the chart makes, leaf by leaf, and what a value changes of it."""

from collections.abc import Mapping
from typing import Any

from support.real.installing.helm import Helm, Object

Objects = dict[tuple[str, str], Object]
ABSENT = "absent"

PODS = {
    ("Deployment", "numapin-operator"): "operator",
    ("DaemonSet", "numapin-enforcer"): "enforcer",
    ("DaemonSet", "numapin-standby"): "standby",
    ("Pod", "numapin-test"): "test",
}


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """Each leaf by its path; of a list by the name of what it has, else the text itself."""
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        value = dict.fromkeys(value, True)
    if isinstance(value, list) and value and all("name" in _mapping(one) for one in value):
        value = {one["name"]: one for one in value}
    if not isinstance(value, dict) or not value:
        return {path.removeprefix("."): value}
    return {
        key: leaf
        for name, one in value.items()
        for key, leaf in flat(one, f"{path}.{name}").items()
    }


def _mapping(value: Any) -> Object:
    return value if isinstance(value, dict) else {}


def leaves(objects: Mapping[tuple[str, str], Object]) -> dict[str, dict[str, Any]]:
    """The leaves of each object, and apart from them those of the pods that it makes."""
    found: dict[str, dict[str, Any]] = {}
    for (kind, name), body in objects.items():
        pod_of = PODS.get((kind, name))
        rest = dict(body)
        if pod_of is not None:
            pod = body if kind == "Pod" else body["spec"]["template"]
            (container,) = pod["spec"]["containers"]
            whole = {**pod, "container": container}
            whole["spec"] = {key: one for key, one in pod["spec"].items() if key != "containers"}
            found[pod_of] = {
                key: one
                for key, one in flat(whole).items()
                if key.startswith(("spec.", "container.", "metadata.labels", "metadata.annot"))
            }
            rest["spec"] = {
                k: v for k, v in body["spec"].items() if kind != "Pod" and k != "template"
            }
        if kind != "Pod":
            found[f"{kind}/{name}"] = flat(rest)
    return found


def rendered(helm: Helm, values: Object) -> dict[tuple[str, str], Object]:
    """What the chart makes, without the long CRDs."""
    return helm.with_values({"crds": {"install": False}} | values)


def changes(
    before: Mapping[tuple[str, str], Object], after: Mapping[tuple[str, str], Object]
) -> dict[str, dict[str, Any]]:
    """What is another leaf than before, or none any more, by object; an added object whole."""
    old, new = leaves(before), leaves(after)
    found = {}
    for name in old.keys() | new.keys():
        was, now = old.get(name, {}), new.get(name, {})
        differs = {
            key: now.get(key, ABSENT)
            for key in was.keys() | now.keys()
            if was.get(key, ABSENT) != now.get(key, ABSENT)
        }
        if differs:
            found[name] = differs
    return found
