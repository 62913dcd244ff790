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


HEAVY = (
    "aiohttp",
    "asyncio",
    "kubernetes",
    "numapin_client",
    "numapin_operator",
    "pydantic",
    "yaml",
)
"""What takes most of the time that a subcommand needs to begin."""

LIGHT = f"""\
import sys
from contextlib import suppress
from numapin_cli.main import main
with suppress(SystemExit):
    main()
print(sorted(set({HEAVY}) & set(sys.modules)), file=sys.stderr)
"""


def heavy_modules(*arguments: str) -> str:
    command = [sys.executable, "-c", LIGHT, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        ("--help",),
        ("explain", "--help"),
        ("completion", "bash"),
        ("completion", "candidates", "--", ""),
        ("completion", "candidates", "--", "get", "--"),
        ("completion", "candidates", "--", "plan", "-o", ""),
    ],
    ids=" ".join,
)
def test_help_and_completion_of_words_import_nothing_heavy(arguments: tuple[str, ...]) -> None:
    assert heavy_modules(*arguments) == "[]"


def test_a_subcommand_imports_what_it_needs() -> None:
    """Else the test above would find nothing, whatever is imported."""
    found = heavy_modules("plan", *EXAMPLES, "-o", "json")
    assert "pydantic" in found
    assert "kubernetes" not in found


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("plna", "argument COMMAND: invalid choice: 'plna'; did you mean plan?"),
        ("topology -o jsn", "argument -o/--output: invalid choice: 'jsn'; did you mean json?"),
        ("get --wathc", "there is no option --wathc; did you mean --watch?"),
        ("plan --clustr=now.json", "there is no option --clustr; did you mean --cluster?"),
        ("topology here", "unexpected argument: here"),
    ],
)
def test_a_wrong_word_is_answered_by_those_like_it(
    words: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(words.split())
    usage, last = capsys.readouterr().err.rstrip("\n").rsplit("\n", 1)
    assert last.endswith(f": error: {error}")
    assert usage.startswith("usage: ")


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
