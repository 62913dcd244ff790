"""One frozen Settings; the only reader of the environment and of the command line."""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final, Literal

from numapin_api import names

ENVIRONMENT_PREFIX: Final = "NUMAPIN_"
HEALTH_ADDRESS: Final = "127.0.0.1:9880"
LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("text", "json")


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; port 0 lets the kernel choose."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read `HOST:PORT`; brackets around an IPv6 host, an empty host means every address.

        Raises:
            argparse.ArgumentTypeError: the port is missing or is no port.
        """
        host, colon, port = text.rpartition(":")
        if not colon or not port.isascii() or not port.isdecimal() or int(port) > 65535:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not an address: write it like 0.0.0.0:9880"
            )
        return cls(host.strip("[]"), int(port))


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that may differ from one installation to the next.

    `kubeconfig` is None in a pod, where the mounted service account token is used; `namespace`
    is where the leader's Lease stands.
    """

    kubeconfig: Path | None
    namespace: str
    health_address: Address
    leader_elect: bool
    log_level: Literal["debug", "info", "warning", "error"]
    log_format: Literal["text", "json"]


def parse_settings(
    arguments: Sequence[str] | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """Settings from flags, else from `NUMAPIN_*` variables, else from their defaults.

    Args:
        arguments: the command line without the program's name; None reads this process's own.
        environment: None reads this process's own.

    Raises:
        SystemExit: bad input (status 2, the reason on standard error), `--help`, `--version`.
    """
    parser = _parser(os.environ if environment is None else environment)
    given = parser.parse_args(arguments)
    return Settings(
        kubeconfig=given.kubeconfig,
        namespace=given.namespace,
        health_address=given.health_address,
        leader_elect=given.leader_elect,
        log_level=given.log_level,
        log_format=given.log_format,
    )


def _parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="numapin-operator",
        description="Decides which container of each node gets which CPUs and NUMA nodes.",
        epilog=f"Each flag may also stand in the environment: {ENVIRONMENT_PREFIX} and its name "
        "in capitals, such as NUMAPIN_LOG_LEVEL. Flags win.",
    )

    def variable(name: str, default: str) -> str:
        return environment.get(ENVIRONMENT_PREFIX + name, default)

    parser.add_argument(
        "--kubeconfig",
        type=Path,
        default=variable("KUBECONFIG", environment.get("KUBECONFIG", "")) or None,
        help="file that says how to reach the API server; not needed in a pod",
    )
    parser.add_argument(
        "--namespace",
        default=variable("NAMESPACE", names.NAMESPACE),
        help="namespace of the leader's Lease (default: %(default)s)",
    )
    parser.add_argument(
        "--health-address",
        type=Address.parse,
        default=variable("HEALTH_ADDRESS", HEALTH_ADDRESS),
        metavar="HOST:PORT",
        help="where /healthz and /readyz are served (default: %(default)s)",
    )
    parser.add_argument(
        "--leader-elect",
        action=argparse.BooleanOptionalAction,
        default=_boolean(parser, variable("LEADER_ELECT", "true")),
        help="write only while holding the Lease, so that several operators may stand by",
    )
    _add_logging(parser, variable("LOG_LEVEL", "info"), variable("LOG_FORMAT", "text"))
    parser.add_argument("--version", action="version", version=f"numapin {version('numapin')}")
    return parser


def _add_logging(parser: argparse.ArgumentParser, level: str, shape: str) -> None:
    parser.add_argument(
        "--log-level",
        type=_one_of(LEVELS),
        default=level,
        metavar="|".join(LEVELS),
        help="the least serious lines to print (default: %(default)s)",
    )
    parser.add_argument(
        "--log-format",
        type=_one_of(FORMATS),
        default=shape,
        metavar="|".join(FORMATS),
        help="lines for people or for machines (default: %(default)s)",
    )


class _one_of:  # noqa: N801 - reads as a type where argparse wants one
    """A text that must be one of some words; unlike `choices`, it also checks defaults."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words

    def __call__(self, text: str) -> str:
        if text not in self._words:
            raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(self._words)}")
        return text


def _boolean(parser: argparse.ArgumentParser, text: str) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if text.lower() not in words:
        parser.error(f"{ENVIRONMENT_PREFIX}LEADER_ELECT: {text!r} is neither true nor false")
    return words[text.lower()]
