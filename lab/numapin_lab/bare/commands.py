"""The command lines that make a machine and run in it, and the environment that they find."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from numapin_lab.bare.options import PACKAGES, RELEASE, Options

CLONE: Final = "/root/numapin"
CACHE: Final = "/var/cache/numapin"
SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NAMESPACES: Final = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--")

GO_SETTINGS: Final = (
    *("GOFLAGS", "GOINSECURE", "GONOPROXY", "GONOSUMDB"),
    *("GOPRIVATE", "GOPROXY", "GOSUMDB", "GOTOOLCHAIN", "GOVCS"),
)
PASSED: Final = frozenset(
    {
        *("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "TERM"),
        *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    }
)
PASSED_PREFIX: Final = "PIP_"
NOT_PASSED: Final = frozenset({"PIP_CACHE_DIR"})

ENTER: Final = """set -eu
root=$1 folder=$2; shift 2
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
for name in sys dev; do mount --rbind "/$name" "$root/$name"; done
while [ "$1" != -- ]; do
  mkdir -p "$root$3"
  mount --bind "$2" "$root$3"
  [ "$1" = rw ] || mount -o remount,bind,ro "$root$3"
  shift 3
done
shift
cd "$root"
mkdir -p .outside
pivot_root . .outside
cd "$folder"
umount -l /.outside
trap : INT TERM
"$@"
"""
"""The first process of a command's namespaces. Its arguments: the machine's folder, the folder to
work in, a mode, a source and a target for each mount, `--`, and the command. It waits for the
command and does not become it, because a first process must reap what others leave."""


@dataclass(frozen=True)
class Go:
    """The machine's Go: its folder, and its settings, wherever they are set."""

    root: Path
    settings: Mapping[str, str]


def debootstrap_command(root: Path, options: Options) -> list[str]:
    """What makes the machine's files."""
    cache = [f"--cache-dir={options.cache / 'debian'}"] if options.cache else []
    included = f"--include={','.join(PACKAGES)}"
    return [
        "debootstrap",
        "--variant=minbase",
        included,
        *cache,
        RELEASE,
        str(root),
        options.mirror,
    ]


def passed_settings(environment: Mapping[str, str], go: Go) -> dict[str, str]:
    """The settings of this machine that commands in the new one need too."""
    passed = {
        name: value
        for name, value in environment.items()
        if (name in PASSED or name.startswith(PASSED_PREFIX)) and name not in NOT_PASSED
    }
    return {**passed, **go.settings}


def machine_environment(settings: Mapping[str, str], go: Go, *, cached: bool) -> dict[str, str]:
    """What a command finds in its environment; `cached` says that there is a folder for caches."""
    caches = {"GOCACHE": "go-build", "GOMODCACHE": "go-mod", "NUMAPIN_LAB_CACHE": "lab"}
    caches |= {"PIP_CACHE_DIR": "pip"}
    return {
        **settings,
        **({name: f"{CACHE}/{folder}" for name, folder in caches.items()} if cached else {}),
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "PATH": f"{go.root}/bin:{SYSTEM_PATH}",
    }


def named_paths(settings: Mapping[str, str]) -> tuple[list[Path], list[Path]]:
    """The files and the folders of this machine that settings name."""
    paths = sorted({Path(value) for value in settings.values() if value.startswith("/")})
    return [one for one in paths if one.is_file()], [one for one in paths if one.is_dir()]


def inside(
    root: Path, bound: Mapping[str, tuple[str, Path]], command: Sequence[str], folder: str = CLONE
) -> list[str]:
    """The command line that runs a command in the machine.

    Args:
        root: the machine's files.
        bound: folder in the machine to `ro` or `rw`, and the folder of this machine that it is.
        command: what to run.
        folder: where to run it.
    """
    triples = [word for at, (mode, path) in bound.items() for word in (mode, str(path), at)]
    script = ("sh", "-c", ENTER, "bare-machine", str(root), folder)
    return [*NAMESPACES, *script, *triples, "--", *command]
