"""YAML files as objects that know where they come from, so that errors can name the place."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

import yaml
from pydantic import ValidationError

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.invalid import invalid_fields
from numapin_api.names import API_VERSION, CPU_POLICY_KIND
from numapin_cli.subcommand import CommandError
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import PodFormatError, PodView

STDIN: Final = Path("-")
_LISTS: Final = frozenset({"List", "PodList", "CpuPolicyList"})


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of a file; `source` names the file, the document and the entry of a list."""

    source: str
    kind: str
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """What is planned: one policy, and pods in the order of the files."""

    policy_name: str
    policy: CpuPolicySpec
    pods: tuple[PodView, ...]


def read_inputs(files: Iterable[Path]) -> PlanInputs:
    """Read a CpuPolicy and Pods.

    Raises:
        CommandError: a file cannot be read, is not YAML, or holds something else.
    """
    policies: list[tuple[Manifest, CpuPolicySpec]] = []
    pods: list[PodView] = []
    for manifest in (found for file in files for found in read_manifests(file)):
        match manifest.kind:
            case "CpuPolicy":
                policies.append((manifest, _policy(manifest)))
            case "Pod":
                pod = _pod(manifest)
                if any(other.uid == pod.uid for other in pods):
                    raise CommandError(
                        f"{manifest.source}: pod {pod.name} is listed twice; list each pod once"
                    )
                pods.append(pod)
            case kind:
                raise CommandError(
                    f"{manifest.source}: kind: {kind} cannot be planned; give a {CPU_POLICY_KIND} "
                    "and Pods (kubectl get pods -o yaml)"
                )
    if len(policies) != 1:
        sources = ", ".join(manifest.source for manifest, _ in policies)
        raise CommandError(
            f"one {CPU_POLICY_KIND} is needed, {len(policies)} are there"
            + (f" ({sources}); leave one" if sources else "; add one with -f")
        )
    manifest, policy = policies[0]
    return PlanInputs(str(_metadata(manifest).get("name", "policy")), policy, tuple(pods))


def read_manifests(file: Path) -> Iterator[Manifest]:
    """Every object of a file, those of lists included.

    Raises:
        CommandError: as `read_inputs`.
    """
    name = "standard input" if file == STDIN else str(file)
    try:
        text = sys.stdin.read() if file == STDIN else file.read_text(encoding="utf-8")
        documents = list(yaml.safe_load_all(text))
    except OSError as problem:
        raise CommandError(f"{file}: {problem.strerror}; give a YAML file") from problem
    except (yaml.YAMLError, ValueError) as problem:
        what = " ".join(str(problem).split())
        raise CommandError(f"{name}: not YAML: {what}; correct it there") from problem
    for number, document in enumerate(documents, start=1):
        if document is not None:
            yield from _objects(document, f"{name}: document {number}")


def _objects(document: object, source: str) -> Iterator[Manifest]:
    if not isinstance(document, dict):
        raise CommandError(f"{source}: must be an object with apiVersion and kind")
    kind = document.get("kind")
    if not isinstance(kind, str):
        raise CommandError(f"{source}: kind: is missing; write CpuPolicy or Pod")
    if kind not in _LISTS:
        yield Manifest(source, kind, document)
        return
    items = document.get("items") or []
    if not isinstance(items, list):
        raise CommandError(f"{source}: items: must be a list of objects")
    for index, item in enumerate(items):
        own = {"kind": kind.removesuffix("List")} | item if isinstance(item, dict) else item
        yield from _objects(own, f"{source}: items[{index}]")


def _policy(manifest: Manifest) -> CpuPolicySpec:
    version = manifest.content.get("apiVersion")
    if version != API_VERSION:
        raise CommandError(f"{manifest.source}: apiVersion: must be {API_VERSION}, not {version!r}")
    try:
        return CpuPolicySpec.model_validate(manifest.content.get("spec") or {}, extra="forbid")
    except ValidationError as refused:
        first = invalid_fields(refused, within="spec")[0]
        raise CommandError(f"{manifest.source}: {first}") from refused


def _pod(manifest: Manifest) -> PodView:
    named = dict(_metadata(manifest))
    full_name = f"{named.get('namespace', 'default')}/{named.get('name', manifest.source)}"
    named.setdefault("uid", str(uuid5(NAMESPACE_URL, full_name)))
    try:
        return parse_pod({**manifest.content, "metadata": named})
    except PodFormatError as refused:
        raise CommandError(f"{manifest.source}: {refused}") from refused


def _metadata(manifest: Manifest) -> Mapping[str, Any]:
    metadata = manifest.content.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}
