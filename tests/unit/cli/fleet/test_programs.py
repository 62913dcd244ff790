"""Versions of numapin's pods, and why one is not ready."""

from typing import Any

import pytest

from numapin_cli.fleet.programs import ProgramPod, version_of

DIGEST = "sha256:0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("numapin-operator:0.1.0", "0.1.0"),
        ("registry.example.com:5000/team/numapin-operator:0.2.0-rc1", "0.2.0-rc1"),
        (f"registry.example.com/numapin-operator:0.1.0@{DIGEST}", "0.1.0"),
        (f"registry.example.com:5000/numapin-operator@{DIGEST}", "0123456789ab"),
        ("registry.example.com:5000/numapin-operator", "latest"),
        ("", "latest"),
    ],
)
def test_the_version_is_the_tag_of_the_image(image: str, version: str) -> None:
    assert version_of(image) == version


UNBOUND = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ({"conditions": [{"type": "Ready", "status": "True"}]}, ""),
        ({"phase": "Pending"}, "Pending"),
        ({}, "Pending"),
        ({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}, "not ready"),
        (
            {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
                ]
            },
            "Unschedulable",
        ),
        (
            {
                "conditions": [{"type": "Ready", "status": "False"}],
                "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}],
            },
            "ImagePullBackOff",
        ),
    ],
    ids=str,
)
def test_a_pod_says_why_it_is_not_ready(status: dict[str, Any], problem: str) -> None:
    metadata = {"name": "a", "namespace": "numapin-system"}
    assert ProgramPod.decode({"metadata": metadata, "status": status}).problem == problem
