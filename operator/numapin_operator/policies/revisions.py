"""Stores the generation of a policy that has reached every node, and deletes older ones."""

import logging
from contextlib import suppress
from dataclasses import replace

from numapin_client.errors import AlreadyExistsError, NotFoundError
from numapin_operator.cluster import Cluster
from numapin_operator.observe.revisions import Revision, Revisions

_log = logging.getLogger(__name__)


async def store_revision(cluster: Cluster, known: Revisions, revision: Revision) -> str:
    """Have an object that says so, and none of an older generation; returns its name.

    Raises:
        ClientError: it cannot be written or deleted now.
    """
    if not known.is_stored(revision):
        revision = revision.anew()
        await _create(cluster, revision)
        revision = replace(revision, stored_as=revision.name)
        known.put(revision)
    for older in known.older(revision):
        with suppress(NotFoundError):
            await cluster.delete_revision(older.name)
        known.drop(older.name)
    return revision.name


async def _create(cluster: Cluster, revision: Revision) -> None:
    """Create it. What has its name and is not as it must be was edited or made by hand."""
    try:
        await cluster.create_revision(revision)
    except AlreadyExistsError:
        about = {"policy": revision.policy, "revision": revision.name}
        _log.warning("a ControllerRevision is damaged, it is written again", extra=about)
        with suppress(NotFoundError):
            await cluster.delete_revision(revision.name)
        await cluster.create_revision(revision)
