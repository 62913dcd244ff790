"""Files of numapin 0.1 say `v1alpha1`; they are read like those of `v1beta1`."""

from pathlib import Path

import pytest

from numapin_cli.inputs.manifests import read_manifests
from numapin_cli.subcommand import CommandError

POLICY = "apiVersion: numapin.io/{}\nkind: CpuPolicy\nmetadata: {{name: web}}\nspec: {{}}\n"


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_both_versions_are_read(version: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY.format(version))
    (read,) = read_manifests([file])
    assert (read.kind, read.name) == ("CpuPolicy", "web")


@pytest.mark.parametrize("version", ["v1", "v1alpha2"])
def test_a_version_that_no_server_has_is_refused(version: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY.format(version))
    with pytest.raises(CommandError, match=r"apiVersion: must be numapin\.io/v1beta1, not "):
        read_manifests([file])
