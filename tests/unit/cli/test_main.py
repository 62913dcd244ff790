import subprocess
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

import pytest

from numapin_cli import main as cli
from numapin_cli.subcommand import CommandError, Subcommand, UsageError

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[3]


def _add_outcome(parser: ArgumentParser) -> None:
    parser.add_argument("outcome")


def _run(options: Namespace) -> int:
    match options.outcome:
        case "failed":
            raise CommandError("pods.yaml, line 3: no such unit; write 2Gi")
        case "usage":
            raise UsageError("--a excludes --b")
        case "interrupted":
            raise KeyboardInterrupt
        case _:
            return 0


PROBE = Subcommand("probe", "tries things", "Tries things.", _add_outcome, _run)


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "SUBCOMMANDS", (PROBE,))
    monkeypatch.setattr(sys, "argv", ["/usr/local/bin/numapin"])


@pytest.mark.parametrize(
    ("executable", "shown"),
    [
        ("/usr/bin/numapin", "numapin"),
        ("/usr/bin/kubectl-numapin", "kubectl numapin"),
        ("main.py", "numapin"),
    ],
)
def test_program_name_is_what_the_user_typed(executable: str, shown: str) -> None:
    assert cli.program_name(executable) == shown


def test_help_lists_each_subcommand_with_its_summary() -> None:
    shown = cli.build_parser("kubectl numapin", [PROBE]).format_help()
    assert shown.startswith("usage: kubectl numapin ")
    assert "probe" in shown
    assert "tries things" in shown


@pytest.mark.parametrize(
    ("outcome", "status", "error"),
    [
        ("done", 0, ""),
        ("failed", 1, "numapin: error: pods.yaml, line 3: no such unit; write 2Gi\n"),
        ("usage", 2, "numapin: error: --a excludes --b\n"),
        ("interrupted", 130, ""),
    ],
)
@pytest.mark.usefixtures("probed")
def test_outcome_decides_exit_status_and_error_text(
    outcome: str, status: int, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["probe", outcome]) == status
    assert capsys.readouterr().err == error


@pytest.mark.parametrize("arguments", [[], ["prob", "done"], ["probe"], ["probe", "done", "more"]])
@pytest.mark.usefixtures("probed")
def test_wrong_usage_exits_with_2_and_shows_how(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert "usage: numapin" in capsys.readouterr().err


@pytest.mark.parametrize("script", ["numapin", "kubectl-numapin"])
def test_installed_scripts_print_their_version(script: str) -> None:
    done = subprocess.run([BIN / script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("numapin ")


WITHOUT_RICH = """\
import sys
sys.modules["rich"] = None
from numapin_cli.main import main
sys.argv[0] = "numapin"
sys.exit(main())
"""
EXAMPLES = ("-f", "examples/policy.yaml", "-f", "examples/pods.yaml")


def without_rich(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """`numapin` where the extra `cli` is not installed."""
    command = [sys.executable, "-c", WITHOUT_RICH, *arguments]
    return subprocess.run(
        command, cwd=ROOT, input=stdin, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("arguments", [("topology",), ("plan", *EXAMPLES)])
def test_a_drawing_without_rich_says_what_to_install(arguments: tuple[str, ...]) -> None:
    done = without_rich(*arguments)
    problem = "a drawing needs the package rich: pip install 'numapin[cli]'; -o json works without"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"numapin: error: {problem}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        ("--help",),
        ("topology", "-o", "json"),
        ("plan", *EXAMPLES, "-o", "json"),
        ("simulate",),
    ],
    ids=" ".join,
)
def test_what_draws_nothing_works_without_rich(arguments: tuple[str, ...]) -> None:
    done = without_rich(*arguments)
    assert done.returncode == 0, done.stderr
