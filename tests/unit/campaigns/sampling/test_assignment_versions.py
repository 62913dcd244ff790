"""What one version of a NodeAssignment reports."""

from numapin_campaigns.sampling.assignment_versions import AssignmentVersion


def test_only_what_spec_and_status_of_one_version_agree_on_is_exclusive() -> None:
    def entry(uid: str, cpus: str, exclusive: bool = True) -> dict[str, object]:
        return {"podUID": uid, "container": "main", "cpus": cpus, "exclusive": exclusive}

    body = {
        "metadata": {"generation": 7},
        "spec": {"pools": {"shared": "0"}, "containers": [entry("a", "1"), entry("b", "2-3")]},
        "status": {
            "driftCount": 5,
            "containers": [entry("a", "1"), entry("b", "2"), entry("gone", "4")],
        },
    }
    version = AssignmentVersion.parse(body)
    assert version.spec_exclusive == ((("a", "main"), 0b10), (("b", "main"), 0b1100))
    assert version.reported_exclusive == ((("a", "main"), 0b10),)
    assert (version.generation, version.shared, version.drift_count) == (7, 1, 5)
    assert AssignmentVersion.parse({"metadata": {"generation": 1}}).reported_exclusive == ()
