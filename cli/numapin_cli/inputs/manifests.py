"""YAML and JSON files as objects that know where they come from, so that errors name the place."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import yaml

from numapin_api.names import (
    ALPHA,
    API_VERSION,
    CPU_POLICY_KIND,
    GROUP,
    NODE_ASSIGNMENT_KIND,
    NODE_REPORT_KIND,
    NODE_TOPOLOGY_KIND,
)
from numapin_cli.bundle.archive import is_archive, objects_of
from numapin_cli.subcommand import CommandError, Faults

CLAIM_KIND: Final = "ResourceClaim"
SLICE_KIND: Final = "ResourceSlice"
STDIN: Final = Path("-")
VERSIONS: Final = {
    CPU_POLICY_KIND: API_VERSION,
    NODE_ASSIGNMENT_KIND: API_VERSION,
    "Node": "v1",
    "Namespace": "v1",
    "Pod": "v1",
    CLAIM_KIND: "resource.k8s.io/v1",
    SLICE_KIND: "resource.k8s.io/v1",
}
"""The kinds that can be planned, each with its apiVersion."""

WORKLOADS: Final = {
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
}
"""The kinds whose pods can be planned, each with its apiVersion."""

WANTED: Final = (
    "give CpuPolicies, Pods, workloads, Nodes, Namespaces, NodeAssignments, ResourceClaims and "
    "ResourceSlices"
)
DEPTH: Final = 100
"""How deep objects may be nested. libyaml ends the interpreter at some ten thousand levels."""

_PARTS: Final = {NODE_REPORT_KIND: API_VERSION, NODE_TOPOLOGY_KIND: API_VERSION}
"""Kinds that say more about a NodeAssignment; see `node_objects`."""

_KNOWN: Final = {**VERSIONS, **WORKLOADS, **_PARTS}
_NAMESPACED: Final = frozenset({"Pod", CLAIM_KIND, *WORKLOADS})
_LISTS: Final = frozenset({"List", *(f"{kind}List" for kind in _KNOWN)})
_OURS: Final = frozenset({CPU_POLICY_KIND, NODE_ASSIGNMENT_KIND, *_PARTS})
_SERVED: Final = frozenset({API_VERSION, f"{GROUP}/{ALPHA}"})
"""What our kinds may have as apiVersion: as for the API server, both mean the same fields."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of a file.

    Attributes:
        source: the file, the document in it, and the entry of a list.
        kind: its kind; with its API group if another one has a kind of that name that is known.
        content: the object.
        stored: whether the API server has it: only that gives an object a UID.
        creator: the workload of a file from which it was made; empty if it was written itself.
    """

    source: str
    kind: str
    content: Mapping[str, Any]
    stored: bool = False
    creator: str = ""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Its metadata; empty if it has none."""
        return section(self.content, "metadata")

    @property
    def name(self) -> str:
        """`namespace/name`, or the name of what has no namespace; empty if it has no name."""
        name, namespace = self.metadata.get("name"), self.metadata.get("namespace")
        if not isinstance(name, str) or not name:
            return ""
        return f"{namespace or 'default'}/{name}" if self.kind in _NAMESPACED else name


def section(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object under a key; empty if there is none."""
    found = content.get(key)
    return found if isinstance(found, Mapping) else {}


def read_manifests(files: Iterable[Path], faults: Faults | None = None) -> list[Manifest]:
    """Every object of some files, those of lists included, in their order.

    Args:
        files: the files.
        faults: takes what is wrong, if it is to be said with what is found wrong later.

    Raises:
        CommandError: a file cannot be read, is not YAML or JSON, or has no object; or one of a kind
            that is known has no name or another apiVersion.
    """
    found, collects = list[Manifest](), faults or Faults()
    for file in files:
        with collects.collected():
            found += _manifests_of(file, collects)
    if faults is None:
        collects.check()
    return found


def in_namespace(manifests: Iterable[Manifest], namespace: str) -> list[Manifest]:
    """The objects, with a namespace for those that name none, as `kubectl apply -n` has it."""
    return [_put(one, namespace) if namespace else one for one in manifests]


def _put(one: Manifest, namespace: str) -> Manifest:
    if one.kind not in _NAMESPACED or one.metadata.get("namespace"):
        return one
    metadata = {**one.metadata, "namespace": namespace}
    return replace(one, content={**one.content, "metadata": metadata})


def read_documents(file: Path) -> list[object]:
    """Every document of a file, of whatever form.

    Raises:
        CommandError: it cannot be read, or is not YAML or JSON.
    """
    return _documents(file, _named(file))


def _named(file: Path) -> str:
    return "standard input" if file == STDIN else str(file)


def _manifests_of(file: Path, faults: Faults) -> Iterator[Manifest]:
    name, documents = _named(file), read_documents(file)
    if all(document is None for document in documents):
        raise CommandError(f"{name}: there is no object in it; {WANTED}")
    for number, document in enumerate(documents, start=1):
        if document is not None:
            with faults.collected():
                yield from _objects(document, f"{name}: document {number}", faults)


def _documents(file: Path, name: str) -> list[object]:
    try:
        text = _text_of(file)
        if text.lstrip().startswith("{"):
            try:
                return [json.loads(text)]  # many times faster than YAML, for large dumps
            except json.JSONDecodeError:
                pass  # several documents, or YAML that begins like JSON
        _check_depth(text)
        return list(yaml.load_all(text, Loader=_LOADER))
    except OSError as problem:
        raise CommandError(f"{file}: {problem.strerror}; give a YAML file") from problem
    except RecursionError as problem:
        raise CommandError(f"{name}: {_TOO_DEEP}") from problem
    except (yaml.YAMLError, ValueError) as problem:
        what = " ".join(str(problem).split())
        raise CommandError(f"{name}: not YAML: {what}; correct it there") from problem


def _text_of(file: Path) -> str:
    """The text of a file, or the objects of a report."""
    if file == STDIN:
        return sys.stdin.read()
    return objects_of(file) if is_archive(file) else file.read_text(encoding="utf-8")


_TOO_DEEP: Final = f"its lists and maps are nested deeper than {DEPTH} levels; {WANTED}"


def _check_depth(text: str) -> None:
    """Raises RecursionError for what is nested too deeply to be loaded."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEPTH:
            raise RecursionError


def _loader() -> type[yaml.SafeLoader]:
    """A loader by which times are texts, as for Kubernetes; with libyaml if that is there."""
    base = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    resolvers = {
        first: [(tag, pattern) for tag, pattern in pairs if tag != "tag:yaml.org,2002:timestamp"]
        for first, pairs in base.yaml_implicit_resolvers.items()
    }
    return type("KubernetesLoader", (base,), {"yaml_implicit_resolvers": resolvers})


_LOADER: Final = _loader()


def _objects(document: object, source: str, faults: Faults) -> Iterator[Manifest]:
    kind = _kind_of(document, source, "")
    assert isinstance(document, Mapping)
    if kind not in _LISTS:
        yield _manifest(document, source, kind)
        return
    items = document.get("items") or []
    if not isinstance(items, list):
        raise CommandError(f"{source}: items: must be a list of objects")
    for index, item in enumerate(items):
        with faults.collected():
            yield _item(item, f"{source}: items[{index}]", kind)


def _item(item: object, where: str, kind: str) -> Manifest:
    """An object of a list of some kind."""
    own = _kind_of(item, where, "" if kind == "List" else kind.removesuffix("List"))
    if own in _LISTS:
        raise CommandError(f"{where}: is a {own} inside a {kind}; give its items themselves")
    return _manifest(item, where, own)


def _kind_of(document: object, source: str, default: str) -> str:
    if not isinstance(document, Mapping):
        raise CommandError(f"{source}: must be an object with apiVersion and kind")
    kind = document.get("kind", default)
    if not isinstance(kind, str) or not kind:
        raise CommandError(f"{source}: kind: is missing; write {', '.join(VERSIONS)} or List")
    return kind


def _manifest(document: Any, source: str, kind: str) -> Manifest:
    made = Manifest(source, kind, document, bool(section(document, "metadata").get("uid")))
    if kind not in _KNOWN:
        return made
    expected = _KNOWN[kind]
    version = document.get("apiVersion", None if expected == API_VERSION else expected)
    group = _group(version)
    if kind not in _OURS and group != _group(expected):
        return replace(made, kind=f"{kind}.{group}")
    if version != expected and not (kind in _OURS and version in _SERVED):
        raise CommandError(f"{source}: apiVersion: must be {expected}, not {version!r}")
    may_lack_name = kind in {CPU_POLICY_KIND, "Pod"} or (
        kind in WORKLOADS and made.metadata.get("generateName")
    )
    if not made.name and not may_lack_name:
        raise CommandError(f"{source}: metadata.name: is missing; name the {kind}")
    return made


def _group(version: object) -> str:
    """The API group of an apiVersion; empty for the core group."""
    return str(version).rpartition("/")[0]
