"""`python -m numapin_lab.devices RESOURCE FILE`: offer the devices of a file to the kubelet.

With `--dra` instead of a file: register as the DRA driver of that name.
"""

import argparse
from pathlib import Path

from numapin_lab.devices import dra_plugin
from numapin_lab.devices.plugin import FOLDER, run


def main() -> None:
    """Run until the process is ended."""
    parser = argparse.ArgumentParser(prog="numapin_lab.devices", description=__doc__)
    parser.add_argument("resource", help="such as example.com/gpu, or gpu.example.com")
    parser.add_argument("file", type=Path, nargs="?", help="see numapin_lab.devices.devices.dump")
    parser.add_argument("--dra", action="store_true", help="the resource is a DRA driver")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of the kubelet's sockets")
    chosen = parser.parse_args()
    if chosen.dra:
        dra_plugin.run(chosen.resource, chosen.folder)
    else:
        run(chosen.resource, chosen.file, chosen.folder)


if __name__ == "__main__":
    main()
