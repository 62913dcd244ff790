"""`numapin explain`: why a pod has or lacks its own CPUs, and what would help."""

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from numapin_api.names import CPU_POLICY_KIND, NODE_ASSIGNMENT_KIND
from numapin_cli.advice.answer import Answerer
from numapin_cli.advice.explanation import Explanation
from numapin_cli.arguments import is_document, reads_files
from numapin_cli.asked.objects import Asked, FromFiles, FromServer
from numapin_cli.asked.target import EXPLAINED, FORMS, POD, Target, parse_target
from numapin_cli.asked.target import WORKLOADS as WORKLOAD_TARGETS
from numapin_cli.asked.workload_pods import Wanted, in_files, on_server
from numapin_cli.inputs.input_flags import say_notes
from numapin_cli.inputs.manifests import WORKLOADS, Manifest, in_namespace, read_manifests
from numapin_cli.inputs.objects import combined, read_objects
from numapin_cli.inputs.workloads.planned import one_of_each
from numapin_cli.inputs.workloads.workload import Workload
from numapin_cli.live.follow import follow
from numapin_cli.live.node_parts import NodeParts
from numapin_cli.live.reader import Reader
from numapin_cli.live.screen import Screen
from numapin_cli.live.server import ask_server
from numapin_cli.scripting.documents import document
from numapin_cli.subcommand import NOT_WELL, CommandError, Faults, UsageError
from numapin_client.client import ApiClient, Source
from numapin_client.resources import CPU_POLICIES, PODS

_EDITS: Final = frozenset({CPU_POLICY_KIND, NODE_ASSIGNMENT_KIND, "Node"})
"""Kinds that `plan` tries when they are edited."""


def run(options: Namespace) -> int:
    """Carry it out; returns the exit status."""
    written = _written_pods(options)
    if bool(written) is bool(options.target):
        given = "both are given" if written else "nothing is given"
        raise UsageError(f"{given}; name {FORMS}, or pods of a file with -f")
    if reads_files(options):
        return _show(options, _answers(options, _asked_in_files(options, written)))
    _text(options, [])  # what it draws with is missing, or not
    if options.watch:
        ask_server(options, partial(_follow, options, written))
    return _show(options, _answers(options, ask_server(options, partial(_ask, options, written))))


@dataclass(frozen=True, slots=True)
class _Written:
    """A pod of a file, and the workload from which it is made; None if it was written itself."""

    pod: Manifest
    workload: Workload | None

    def beside(self, asked: Asked) -> Asked:
        """The question with the pods of its workload that the cluster still has then."""
        return asked.once_created_by(self.workload) if self.workload else asked


def _written_pods(options: Namespace) -> list[_Written]:
    """The pods of the files, one for each workload; what else they have is said."""
    faults = Faults()
    manifests = in_namespace(read_manifests(options.filename, faults), options.namespace)
    for one in manifests:
        with faults.collected():
            if one.kind in _EDITS:
                raise CommandError(
                    f"{one.source}: kind: {one.kind} cannot be explained, give Pods or workloads;"
                    " numapin plan -f tries an edited policy"
                )
    objects = combined([], manifests, faults)
    chosen = list(one_of_each(list(objects.of("Pod").values())))
    unused = [one for one in objects.all() if one.kind != "Pod"]
    say_notes(objects.notes)
    say_notes(f"left out: {one.kind} {one.name}: the cluster's are used" for one in unused)
    say_notes(said for _, said in chosen if said)
    if manifests and not chosen:
        files = ", ".join(map(str, options.filename))
        raise CommandError(f"{files}: no pod is created from it; give Pods or workloads")
    creators = {pod.creator for pod, _ in chosen if pod.creator}
    workloads = (
        Workload.parse(one)
        for one in manifests
        if one.kind in WORKLOADS and any(f"{one.kind} {one.name}" in named for named in creators)
    )
    by_title = {one.title: one for one in workloads}
    return [_Written(pod, by_title.get(pod.creator)) for pod, _ in chosen]


def _asked_in_files(options: Namespace, written: Sequence[_Written]) -> list[Asked]:
    objects = read_objects(options.cluster, [])
    say_notes(objects.notes)
    source = FromFiles(objects)
    if not written:
        target = _target(options)
        if target.kind not in WORKLOAD_TARGETS:
            return [source.asked(target, options.nodes)]
        found = in_files(source, target, _wanted(options))
        say_notes([found.note])
        return list(found.asked)
    asked = [source.for_pod(one.pod, options.node, options.nodes) for one in written]
    return [one.beside(each) for one, each in zip(written, asked, strict=True)]


async def _ask(options: Namespace, written: Sequence[_Written], client: ApiClient) -> list[Asked]:
    reader = Reader(client)
    source = FromServer(reader, client.connection.login.namespace)
    if written:
        pods = [await source.for_pod(one.pod, options.node, options.nodes) for one in written]
        found = [one.beside(each) for one, each in zip(written, pods, strict=True)]
    elif (target := _target(options)).kind in WORKLOAD_TARGETS:
        of_workload = await on_server(source, reader, target, _wanted(options))
        say_notes([of_workload.note])
        found = list(of_workload.asked)
    else:
        found = [await source.asked(target, options.nodes, options.node)]
    say_notes(source.notes)
    return found


def _target(options: Namespace) -> Target:
    return parse_target(options.target, options.namespace, EXPLAINED)


def _wanted(options: Namespace) -> Wanted:
    return Wanted(options.pods, options.nodes, options.node)


async def _follow(options: Namespace, written: Sequence[_Written], client: ApiClient) -> None:
    async def read() -> list[Explanation]:
        return _answers(options, await _ask(options, written, client))

    screen = Screen[list[Explanation]](partial(_text, options))
    asked = await _ask(options, written, client)
    sources = [Source(CPU_POLICIES), *await NodeParts(Reader(client)).sources()]
    if asked[0].kind == POD and asked[0].manifest.stored:
        namespace, _, name = asked[0].manifest.name.partition("/")
        only = f"metadata.name={name}" if len(asked) == 1 else ""
        sources.append(Source(PODS, namespace, field_selector=only))
    await follow(client, sources, read, screen.show)


def _answers(options: Namespace, asked: Sequence[Asked]) -> list[Explanation]:
    return [Answerer(one, options.node, time.time()).answer() for one in asked]


def _show(options: Namespace, answers: Sequence[Explanation]) -> int:
    sys.stdout.write(_text(options, answers))
    return 0 if all(one.is_well for one in answers) else NOT_WELL


def _text(options: Namespace, answers: Sequence[Explanation]) -> str:
    if is_document(options.output):
        return document({"explanations": [one.to_json() for one in answers]}, options.output)
    from numapin_cli.drawing.explanation import draw_explanation  # noqa: PLC0415
    from numapin_cli.drawing.text import rendered  # noqa: PLC0415

    wide = options.output == "wide"
    return "\n".join(rendered(draw_explanation(one, wide=wide)) for one in answers)
