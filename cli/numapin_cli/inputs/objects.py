"""The objects of some files, each once: what a cluster has, and what is applied to it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from pydantic import ValidationError

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.invalid import invalid_fields
from numapin_api.names import CPU_POLICY_KIND, NODE_ASSIGNMENT_KIND
from numapin_cli.inputs.manifests import (
    STDIN,
    VERSIONS,
    Manifest,
    in_namespace,
    read_manifests,
    section,
)
from numapin_cli.inputs.node_objects import with_parts
from numapin_cli.inputs.policy_rules import refused_fields
from numapin_cli.inputs.workloads.planned import ended, planned
from numapin_cli.subcommand import CommandError, Faults
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import PodFormatError

_LATER: Final = "9999-12-31T23:59:59Z"
"""When an object was created that the API server has not seen: after all others."""


@dataclass(frozen=True, slots=True)
class Objects:
    """Objects by kind and name, in the order of the files; each is complete enough to decode.

    A kind is there without objects if all that were given have ended. `written` has the names of
    the pods that people wrote.
    """

    by_kind: Mapping[str, dict[str, Manifest]] = field(default_factory=dict)
    written: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    """What was left out or replaced, a line each, for people."""

    def of(self, kind: str) -> dict[str, Manifest]:
        """The objects of a kind by name."""
        return self.by_kind.get(kind, {})

    def all(self) -> Iterator[Manifest]:
        """Every object."""
        return (manifest for named in self.by_kind.values() for manifest in named.values())

    def without(self, pods: Iterable[Manifest]) -> "Objects":
        """The objects once some pods have ended."""
        left = _each_once(ended(self.all(), pods), Faults()).by_kind
        return replace(self, by_kind={kind: left.get(kind, {}) for kind in self.by_kind})


def read_objects(cluster: Iterable[Path], files: Iterable[Path], namespace: str = "") -> Objects:
    """The objects of a cluster once `files` are applied to it.

    An object of `files` replaces that of the cluster as `kubectl apply` does: the spec is replaced,
    labels are merged, the status stays.

    Args:
        cluster: what the API server has; its objects are read as the operator reads them.
        files: what people wrote; errors in it are named.
        namespace: of what people wrote without one; `default` if this is empty.

    Raises:
        CommandError: a file or an object of it cannot be used, or an object is there twice.
    """
    listed, faults = ([*cluster], [*files]), Faults()
    if [*listed[0], *listed[1]].count(STDIN) > 1:
        raise CommandError("standard input (-) is given twice, and can be read once; use a file")
    present, written = (read_manifests(each, faults) for each in listed)
    return combined(present, in_namespace(written, namespace), faults)


def combined(
    cluster: Iterable[Manifest], written: Iterable[Manifest], faults: Faults | None = None
) -> Objects:
    """The objects of a cluster once what people wrote is applied to it; see `read_objects`.

    NodeAssignments have the form of v1alpha1, and what the other objects of their nodes say.

    Args:
        cluster: what the API server has.
        written: what people wrote.
        faults: what was found wrong before; it is said with what is found wrong here.

    Raises:
        CommandError: something is wrong; all of it is said.
    """
    faults = faults or Faults()
    listed = with_parts(cluster), with_parts(written)
    chosen = planned(*listed, _nodes(*listed, faults), faults)
    present, applied = (_each_once(each, faults) for each in (chosen.cluster, chosen.written))
    made = _applied(present, applied, faults)
    faults.check()
    given = {one.kind: dict[str, Manifest]() for one in listed[0] if one.kind in VERSIONS}
    return replace(made, by_kind={**given, **made.by_kind}, notes=tuple(chosen.notes))


def _nodes(
    cluster: Iterable[Manifest], written: Iterable[Manifest], faults: Faults
) -> dict[str, Manifest]:
    """The Nodes of both."""
    nodes = ([one for one in listed if one.kind == "Node"] for listed in (cluster, written))
    present, applied = (_each_once(each, faults) for each in nodes)
    return _applied(present, applied, faults).of("Node")


def _applied(present: Objects, applied: Objects, faults: Faults) -> Objects:
    """The objects of a cluster once others are applied to it."""
    for manifest in applied.all():
        with faults.collected():
            _check(manifest)
    by_kind = {kind: dict(named) for kind, named in present.by_kind.items()}
    for manifest in applied.all():
        named = by_kind.setdefault(manifest.kind, {})
        key = _key(manifest)
        with faults.collected():
            named[key] = _edited(named[key], manifest) if key in named else manifest
    completed = {
        kind: {key: _completed(manifest) for key, manifest in named.items()}
        for kind, named in by_kind.items()
    }
    return Objects(completed, frozenset(applied.of("Pod")))


def _each_once(manifests: Iterable[Manifest], faults: Faults) -> Objects:
    by_kind: dict[str, dict[str, Manifest]] = {}
    for manifest in manifests:
        named = by_kind.setdefault(manifest.kind, {})
        first = named.setdefault(_key(manifest), manifest)
        with faults.collected():
            if first is not manifest:
                raise CommandError(
                    f"{manifest.source}: {manifest.kind} {manifest.name} is listed twice, first in"
                    f" {first.source}; list it once (--cluster takes what -f replaces)"
                )
    return Objects(by_kind)


def _key(manifest: Manifest) -> str:
    return manifest.name or (manifest.source if manifest.kind == "Pod" else "policy")


def _check(manifest: Manifest) -> None:
    """Raises CommandError for what the API server would not accept from a person."""
    if manifest.kind == CPU_POLICY_KIND:
        try:
            spec = CpuPolicySpec.model_validate(manifest.content.get("spec") or {}, extra="forbid")
        except ValidationError as refused:
            wrong = invalid_fields(refused, within="spec")
            raise CommandError(*(f"{manifest.source}: {one}" for one in wrong)) from refused
        if contradicting := [f"{manifest.source}: {one}" for one in refused_fields(spec)]:
            raise CommandError(*contradicting)
    elif manifest.kind == "Pod" and not manifest.stored:
        try:
            parse_pod(_completed(manifest).content)
        except PodFormatError as refused:
            raise CommandError(f"{manifest.source}: {refused}") from refused


def _completed(manifest: Manifest) -> Manifest:
    """With the metadata that only an API server gives."""
    metadata = dict(manifest.metadata)
    key = f"{manifest.kind}/{_key(manifest)}"
    if manifest.kind == CPU_POLICY_KIND:
        metadata.setdefault("name", _key(manifest))
        metadata["creationTimestamp"] = metadata.get("creationTimestamp") or _LATER
    made_up = "" if manifest.kind == CPU_POLICY_KIND else str(uuid5(NAMESPACE_URL, key))
    metadata["uid"] = metadata.get("uid") or made_up  # assignments name that of their policy
    if not str(metadata.get("resourceVersion")).isdecimal():
        metadata["resourceVersion"] = "1"
    return replace(manifest, content={**manifest.content, "metadata": metadata})


def _edited(before: Manifest, after: Manifest) -> Manifest:
    """An object of the cluster after an object of a file is applied."""
    if after.kind == NODE_ASSIGNMENT_KIND:
        raise CommandError(
            f"{after.source}: NodeAssignment {after.name} is in the cluster already"
            f" ({before.source}), and only numapin writes it; leave it out"
        )
    labels = {**section(before.metadata, "labels"), **section(after.metadata, "labels")}
    content: dict[str, Any] = {
        **before.content,
        "metadata": {**after.metadata, **before.metadata, "labels": labels},
    }
    if after.kind == CPU_POLICY_KIND:
        content["spec"] = after.content.get("spec") or {}
        if _differ(before, after):
            generation = before.metadata.get("generation")
            grown = generation + 1 if isinstance(generation, int) else 2
            content["metadata"]["generation"] = grown
    elif after.kind == "Pod":
        content["spec"] = {**section(before.content, "spec"), **section(after.content, "spec")}
    elif after.kind == "Node":
        status = {**section(before.content, "status"), **section(after.content, "status")}
        content["status"] = status
    return Manifest(after.source, after.kind, content, before.stored)


def _differ(before: Manifest, after: Manifest) -> bool:
    """Whether the API server counts a new generation of a policy.

    It fills in defaults and compares what is written: `0,1` is another text than `0-1`.
    """
    try:
        one, other = (_stored(manifest.content.get("spec") or {}) for manifest in (before, after))
    except ValidationError:
        return True
    return one != other


def _stored(spec: object) -> object:
    """A policy's spec as it is written, with the defaults.

    Raises:
        ValidationError: it is not valid.
    """
    return _as_written(spec, CpuPolicySpec.model_validate(spec).to_wire())


def _as_written(written: object, complete: object) -> object:
    """`complete` with every value that is written."""
    if isinstance(written, Mapping) and isinstance(complete, Mapping):
        return {key: _as_written(written.get(key), value) for key, value in complete.items()}
    if isinstance(written, list) and isinstance(complete, list) and len(written) == len(complete):
        return list(map(_as_written, written, complete))
    return complete if written is None else written
