"""Reads the page of a node's enforcer through the API server."""

from collections.abc import Mapping
from typing import Any, Final

from numapin_cli.inputs.manifests import section
from numapin_cli.live.reader import Reader
from numapin_cli.live.server import said
from numapin_cli.noise.page import MalformedPageError, Page
from numapin_cli.subcommand import CommandError
from numapin_client.errors import MalformedAnswerError, NotFoundError, UnavailableError
from numapin_client.resources import PODS, Key

_PAGE: Final = "cpus"
_ENFORCER: Final = "app.kubernetes.io/component=enforcer"
_PORT_NAME: Final = "health"
_DEFAULT_PORT: Final = 8081
_HOW: Final = "manifests/components/cpu-metrics, or cpuMetrics.enabled of the chart"


class EnforcerPage:
    """The page of the enforcer of one node."""

    def __init__(self, reader: Reader, node: str, pod: Key, port: int) -> None:
        self._reader, self._node, self._pod, self._port = reader, node, pod, port

    @classmethod
    async def find(cls, reader: Reader, node: str, namespace: str) -> "EnforcerPage":
        """Find the enforcer of a node.

        Raises:
            ClientError: its pods may not be listed, or the API server does not answer.
            CommandError: there is none.
        """
        on_node = f"spec.nodeName={node},status.phase=Running"
        pods = await reader.all(
            PODS, namespace=namespace, label_selector=_ENFORCER, field_selector=on_node
        )
        if not pods:
            raise CommandError(
                f"no enforcer runs on node {node} in namespace {namespace}; name numapin's"
                " namespace with --numapin-namespace, or see kubectl get pods -o wide there"
            )
        newest = max(pods, key=lambda one: str(one.metadata.get("creationTimestamp") or ""))
        return cls(reader, node, Key.of(newest.content), _port(newest.content))

    async def read(self) -> Page:
        """Read it once.

        Raises:
            ClientError: it may not be read, or the API server does not answer.
            CommandError: the enforcer is gone, cannot be reached, or has no such page.
        """
        try:
            body = await self._reader.client.ask_pod(self._pod, self._port, _PAGE)
            return Page.decode(body)
        except NotFoundError as error:
            if error.status_reason:
                raise CommandError(f"pod {self._pod} is gone; measure again") from error
            raise CommandError(
                f"the enforcer of node {self._node} has no page /{_PAGE}: it is an older one, or "
                f"runs without --cpu-metrics ({_HOW})"
            ) from error
        except UnavailableError as error:
            raise CommandError(
                f"the API server does not reach pod {self._pod}, port {self._port}, on node "
                f"{self._node}: {error.message}; does a NetworkPolicy leave the port open to it, "
                "and is the node there?"
            ) from error
        except (MalformedPageError, MalformedAnswerError) as error:
            why = error if isinstance(error, MalformedPageError) else said(error)
            raise CommandError(
                f"pod {self._pod}: its page /{_PAGE} cannot be read ({why}); are enforcer and this "
                "command of the same version?"
            ) from error


def _port(pod: Mapping[str, Any]) -> int:
    """The port that is named in the pod."""
    for container in section(pod, "spec").get("containers") or ():
        for one in container.get("ports") or ():
            if one.get("name") == _PORT_NAME:
                return int(one["containerPort"])
    return _DEFAULT_PORT
