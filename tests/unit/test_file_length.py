"""The files longer than 300 lines are those that are listed with a reason."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_LINES = 300
FOLDERS = (
    *("crds", "daemon", "client", "operator", "enforcer", "cli", "page", "lab"),
    "campaigns",
    *("benchmarks", "examples", "release", "tests"),
)
GENERATED = (
    "enforcer/numapin_enforcer/runtime/generated/",
    "crds/numapin_api/schema/plain.py",
    "crds/numapin_api/schema/plain_assignment.py",
)
LONGER = {
    "crds/numapin_api/conditions/reasons.py": "one vocabulary: each reason with its meaning",
    "crds/numapin_api/cpupolicy.py": "one kind: its fields with their descriptions",
    "crds/numapin_api/nodeassignment.py": "one kind: its fields with their descriptions",
    "enforcer/numapin_enforcer/__main__.py": "every part, wired together",
    "lab/numapin_lab/played/enforcers.py": "one program: what all enforcers of a cluster do",
    "lab/numapin_lab/running_lab.py": "one lab: what a test may do with it",
    "operator/numapin_operator/application.py": "every part, wired together",
    "operator/numapin_operator/observe/cache.py": "one index, which each change keeps consistent",
    "tests/e2e/test_installed_as_pods.py": "one installation for all tests: it takes a minute",
    "tests/e2e/test_vmnode.py": "one virtual machine for all tests: it takes half a minute",
    "tests/integration/contract/test_installed.py": "one API server with everything installed",
    "tests/support/fakes/cluster.py": "one fake of all that the operator reads and writes",
    "tests/support/fakes/cluster_contract.py": "one contract of the fake and the real cluster",
    "tests/unit/cli/commands/test_get.py": "one command, in both forms",
    "tests/unit/enforcer/test_agent.py": "the passes of an agent in one world",
    "tests/unit/operator/test_term.py": "one table: what each part does over two terms",
}
"""Path: reason. A file that grows longer is split by what its parts are about. One that is no
longer too long leaves the list."""


def test_the_files_that_are_too_long_are_those_of_the_list() -> None:
    files = (one for folder in FOLDERS for one in (ROOT / folder).rglob("*.py"))
    lines = {str(one.relative_to(ROOT)): len(one.read_text().splitlines()) for one in files}
    longer = {
        path
        for path, count in lines.items()
        if count > MOST_LINES and not path.startswith(GENERATED)
    }
    assert len(lines) > 1000
    assert longer == LONGER.keys()
