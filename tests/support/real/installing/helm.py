"""The real Helm, with a home of its own."""

import subprocess
from pathlib import Path
from typing import Any

import yaml

from numapin_api import names

CHART = Path(__file__).parents[4] / "charts" / "numapin"
PRESETS = CHART / "presets"

Object = dict[str, Any]


class Helm:
    """Runs helm with a home of its own."""

    def __init__(self, program: Path, folder: Path, kubeconfig: Path | None = None) -> None:
        self._program = program
        self._values = folder / "values.yaml"
        self._environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}
        if kubeconfig is not None:
            self._environment["KUBECONFIG"] = str(kubeconfig)

    def ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it in the namespace of the manifests."""
        return subprocess.run(
            [self._program, *arguments, f"--namespace={names.NAMESPACE}"],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            stdin=subprocess.DEVNULL,
        )

    def __call__(self, *arguments: str) -> str:
        """Run it; its standard output."""
        answer = self.ask(*arguments)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    def template(self, *settings: str) -> dict[tuple[str, str], Object]:
        """The objects that would be installed, by kind and name."""
        return by_name(self("template", "numapin", str(CHART), *_set(settings)))

    def preset(self, name: str) -> str:
        """What is installed with a preset of the chart; `default` is none."""
        chosen = [] if name == "default" else [f"--values={PRESETS / name}.yaml"]
        return self("template", "numapin", str(CHART), *chosen)

    def with_values(self, values: Object) -> dict[tuple[str, str], Object]:
        """The same, with the values of a file."""
        self._values.write_text(yaml.safe_dump(values))
        return by_name(self("template", "numapin", str(CHART), f"--values={self._values}"))

    def refusal(self, values: Object) -> str:
        """Why Helm renders nothing with these values."""
        self._values.write_text(yaml.safe_dump(values))
        answer = self.ask("template", "numapin", str(CHART), f"--values={self._values}")
        assert answer.returncode != 0, "they are not refused"
        return answer.stderr


def _set(settings: tuple[str, ...]) -> list[str]:
    return [f"--set={one}" for one in settings]


def by_name(text: str) -> dict[tuple[str, str], Object]:
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(text) if one}
