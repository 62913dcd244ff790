"""Generations of policies that have reached every node, as ControllerRevisions keep them.

Does no I/O.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Final

from pydantic import ValidationError

from numapin_api import names
from numapin_api.cpupolicy import CpuPolicySpec
from numapin_operator.observe.records import PolicyView

Json = dict[str, Any]

LABELS: Final = {
    "app.kubernetes.io/component": "operator",
    "app.kubernetes.io/name": "numapin",
    "numapin.io/revision-of": names.CPU_POLICY_SINGULAR,
}
"""On the objects that this operator writes. Those of a DaemonSet have the labels of its pods."""

LONGEST_NAME: Final = 253
"""Source: Kubernetes, "Object Names and IDs", "DNS Subdomain Names"."""

DIGEST_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Revision:
    """One generation of one policy.

    All of it is in `data` of the object, which the API server never lets anybody change, and its
    digest is in the object's name. So an object that says something else is found, and the names of
    two policies, however long, lead to two objects.
    Source: kubernetes `apps/validation.ValidateControllerRevisionUpdate`.

    Attributes:
        policy: the policy's name.
        uid: its UID; a policy that is deleted and created again has another one.
        generation: the generation.
        spec: its spec.
        stored_as: the name of its object, which another release may have written in other words;
            empty if there is none.
    """

    policy: str
    uid: str
    generation: int
    spec: CpuPolicySpec
    stored_as: str = ""

    @classmethod
    def of(cls, policy: PolicyView) -> "Revision":
        """The generation of a policy that is its newest one."""
        return cls(policy.name, policy.uid, policy.generation, policy.spec)

    @property
    def name(self) -> str:
        """The name of its object, or the one that it would get."""
        return self.stored_as or _name(self.policy, self._data())

    def anew(self) -> "Revision":
        """The same, to be written in the words of this release."""
        return replace(self, stored_as="")

    def to_object(self, namespace: str) -> Json:
        """The ControllerRevision, which is deleted with its policy.

        `blockOwnerDeletion` would need a right to the policy's finalizers, and is of no use: nobody
        waits for it to be gone. The keys of `data` are sorted: a patch of anything else rewrites it
        in this order, which would be refused as a change of `data`.
        """
        owner = {
            "apiVersion": names.API_VERSION,
            "kind": names.CPU_POLICY_KIND,
            "name": self.policy,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": False,
        }
        metadata = {
            "name": self.name,
            "namespace": namespace,
            "labels": LABELS,
            "ownerReferences": [owner],
        }
        data = json.loads(_text(self._data()))
        return {"metadata": metadata, "data": data, "revision": self.generation}

    @classmethod
    def decode(cls, body: Mapping[str, Any]) -> "Revision | None":
        """Read a ControllerRevision; None if it is not as this operator has written it.

        Its `revision` and its owners, which may be edited, are not read.
        """
        try:
            data = body["data"]
            about = data["metadata"]
            spec = CpuPolicySpec.model_validate(data["spec"])
            policy, name = str(about["name"]), _name(str(about["name"]), data)
            made = cls(policy, str(about["uid"]), int(about["generation"]), spec, name)
        except (KeyError, TypeError, ValueError, ValidationError):
            return None
        return made if name == body["metadata"]["name"] else None

    def _data(self) -> Json:
        about = {"name": self.policy, "uid": self.uid, "generation": self.generation}
        spec = self.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return {
            "apiVersion": names.API_VERSION,
            "kind": names.CPU_POLICY_KIND,
            "metadata": about,
            "spec": spec,
        }


def earlier_form(policy: PolicyView) -> Revision | None:
    """What release 0.1 has written into the policy's status; None if that is nothing valid."""
    done = policy.status.rolled_out
    if done is None or not done.spec:
        return None
    try:
        spec = CpuPolicySpec.model_validate(done.spec)
    except ValidationError:
        return None
    return Revision(policy.name, policy.uid, done.generation, spec)


def as_of(policy: PolicyView, revision: Revision) -> PolicyView:
    """A policy as it was at an earlier generation."""
    return replace(policy, spec=revision.spec, generation=revision.generation, problem=None)


def _ignore(_: Revision) -> None:
    """Do nothing."""


class Revisions:
    """The revisions of all policies: those that are stored, and the newest that was ever known.

    What is deleted by hand stays known, so that it can be written again.

    Attributes:
        changed: called with each that is stored now and was not, and with each that must be stored
            again.
    """

    def __init__(self) -> None:
        self.changed: Callable[[Revision], object] = _ignore
        self._stored: dict[str, Revision] = {}
        self._known: dict[str, Revision] = {}

    def put(self, revision: Revision) -> None:
        """Take in one that is stored."""
        if self._stored.get(revision.name) != revision:
            self._stored[revision.name] = revision
            self._note(revision)
            self.changed(revision)

    def drop(self, name: str) -> None:
        """Take in that there is none of this name any more, or that it is not what it was."""
        before = self._stored.pop(name, None)
        if before is not None and self._known.get(before.uid) == before:
            self.changed(before)

    def forget(self, uid: str) -> None:
        """A policy is gone: the garbage collector deletes its revisions."""
        self._known.pop(uid, None)

    def start_over(self) -> None:
        """Forget what is not stored: the API server has returned to an older state."""
        self._known.clear()
        for revision in self._stored.values():
            self._note(revision)

    def newest(self, policy: PolicyView) -> Revision | None:
        """The newest generation of a policy that has reached every node, in whichever form.

        One that says something else of the policy's generation than the policy is of another
        history, as after a restore of etcd.
        """
        known = self._known.get(policy.uid), earlier_form(policy)
        fitting = [one for one in known if one is not None and _fits(one, policy)]
        return max(fitting, key=lambda one: one.generation, default=None)

    def is_stored(self, revision: Revision) -> bool:
        """Whether there is an object that says so."""
        return revision.name in self._stored

    def stored(self) -> Iterator[Revision]:
        """All that are stored."""
        return iter(self._stored.values())

    def older(self, revision: Revision) -> Iterator[Revision]:
        """Stored ones of the same policy that nothing needs any more."""
        for one in tuple(self._stored.values()):
            if one.uid == revision.uid and one.generation < revision.generation:
                yield one

    def _note(self, revision: Revision) -> None:
        known = self._known.get(revision.uid)
        if known is None or known.generation <= revision.generation:
            self._known[revision.uid] = revision


def _fits(revision: Revision, policy: PolicyView) -> bool:
    if revision.generation == policy.generation:
        return revision.spec == policy.spec
    return revision.generation < policy.generation


def _name(policy: str, data: Mapping[str, Any]) -> str:
    digest = blake2b(_text(data), digest_size=DIGEST_BYTES).hexdigest()
    room = LONGEST_NAME - len(digest) - 1
    return f"{policy[:room].rstrip('-.')}-{digest}"


def _text(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()
