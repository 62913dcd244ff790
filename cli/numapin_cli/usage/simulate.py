"""The command line of `numapin simulate`."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Final

from numapin_cli.subcommand import Subcommand, run_of

_DESCRIPTION: Final = """\
Answer scenarios: a machine, a policy and a sequence of pods that are added and removed. Reads one
JSON object per line from FILE (default: standard input) and writes one answer per line:

  in:  {"name", "machine", "policy": <CpuPolicy.spec>,
        "steps": [{"add": <Pod>} | {"remove": "<pod uid>"}, ...],
        "devices": {"<resource>": [{"id", "numaNodes": [0], "healthy": true}, ...], ...},
        "node": <Node>, "namespaces": {"<name>": {<labels>}, ...}}
       (devices, node and namespaces may be left out)
  out: {"name", "steps": [{"admitted", "reason", "containers", "shared"}, ...]}
    or {"name", "error"} where the policy cannot work on that machine

The answers are those of the kubelet (CPU, Memory, Device and Topology Manager of v1.36), which has
neither modes nor selectors. With --as-operator each step is answered by the decision of numapin's
operator: with the policy's mode and selectors, CPUs reserved as the Node says, and none of the
kubelet's faults. Devices are then given first, by a kubelet with the policy's topology whose CPU
and memory managers are off; CPUs and memory follow them. If a scenario cannot be read, the error
names its line and field, the next one is answered, and the exit status is 1.
"""

_EPILOG: Final = """\
examples:
  numapin simulate --machines machines/ scenarios.jsonl
  numapin topology -o json > machines/here.json
  echo '{"name":"x","machine":"here","policy":{},"steps":[]}' | numapin simulate --machines machines
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="scenarios (default: standard input)"
    )
    parser.add_argument(
        "--machines",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="folder of machines as NAME.json (default: the current folder)",
    )
    parser.add_argument(
        "--as-operator",
        action="store_true",
        help="answer as numapin's operator decides",
    )


SIMULATE: Final = Subcommand(
    name="simulate",
    summary="answer scenarios as the kubelet would, line by line",
    description=_DESCRIPTION,
    add_arguments=_add_arguments,
    run=run_of("numapin_cli.commands.simulate"),
)
