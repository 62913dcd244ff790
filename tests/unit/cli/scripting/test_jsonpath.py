"""`-o jsonpath`, by cases of kubectl's own tests (client-go, util/jsonpath/jsonpath_test.go)."""

import json
from pathlib import Path
from typing import Any

import pytest

from numapin_cli.main import main
from numapin_cli.scripting.jsonpath import choose
from numapin_cli.subcommand import UsageError
from support.fakes.worlds.described_cluster import cluster
from support.values.operator import pod_body

STORE: dict[str, Any] = {
    "Name": "jsonpath",
    "Book": [
        {"Author": "Nigel Rees", "Price": 8.95},
        {"Author": "Evelyn Waugh", "Price": 12.99},
        {"Author": "Herman Melville", "Price": 8.99},
    ],
    "Bicycle": [
        {"Color": "red", "Price": 19.95, "IsNew": True},
        {"Color": "green", "Price": 20.01, "IsNew": False},
    ],
    "Labels": {"engieer": 10, "web/html": 15, "k8s-app": 20, "a.b/c": 1},
    "Employees": {"jason": "manager", "dan": "clerk"},
}
POINTS = [
    {"id": "i1", "x": 4, "y": -5},
    {"id": "i2", "x": -2, "y": -5, "z": 1},
    {"id": "i5", "x": 0, "y": 2, "z": 1},
    {"id": "i7", "x": None, "y": 4},
]


@pytest.mark.parametrize(
    ("template", "document", "text"),
    [
        ("hello {.Name}", STORE, "hello jsonpath"),
        ("{[?(@<5)]}", [2, 6, 3, 7], "2 3"),
        ('{"{"}', None, "{"),
        ("{[1,3,4]}", [0, 1, 2, 3, 4], "1 3 4"),
        ("{[0:2]}", ["Monday", "Tudesday"], "Monday Tudesday"),
        ("{$.Labels.web/html}", STORE, "15"),
        ("{$.Employees.jason}", STORE, "manager"),
        ("{.Labels.k8s-app}", STORE, "20"),
        (r"{.Labels.a\.b/c}", STORE, "1"),
        ("{.Labels['a.b/c','k8s-app']}", STORE, "1 20"),
        ("{.Bicycle[*].Color}", STORE, "red green"),
        ("{.Book[*].Author}", STORE, "Nigel Rees Evelyn Waugh Herman Melville"),
        (
            '{range .Bicycle[*]}{ "{" }{ @.* }{ "} " }{end}',
            STORE,
            "{red 19.95 true} {green 20.01 false} ",
        ),
        ("{..Price}", STORE, "8.95 12.99 8.99 19.95 20.01"),
        (
            "{range .Bicycle[*]}{ @ }{ ' ' }{end}",
            STORE,
            '{"Color":"red","Price":19.95,"IsNew":true}'
            ' {"Color":"green","Price":20.01,"IsNew":false} ',
        ),
        ("{.Book[-1:]}", STORE, '{"Author":"Herman Melville","Price":8.99}'),
        ("{..Book[2]}", STORE, '{"Author":"Herman Melville","Price":8.99}'),
        ("{.Bicycle[?(@.IsNew==true)].Color}", STORE, "red"),
        ("{.Bicycle[?(@.Color=='green')].Price}", STORE, "20.01"),
        ("{.Book[?(@.Price>=8.99)].Price}", STORE, "12.99 8.99"),
        ("{.hello}", STORE, ""),
        ("before-{.hello}after", STORE, "before-after"),
        ("{[?(@.z)].id}", POINTS, "i2 i5"),
        ("{[0]['id']}", POINTS, "i1"),
        ("{[-1]['x']}", POINTS, "null"),
        ("{[9].id}", POINTS, ""),
        ("[*].id", POINTS, "i1 i2 i5 i7"),
        ('{range [*]}{.id}{"\\t"}{.y}{"\\n"}{end}', POINTS[:2], "i1\t-5\ni2\t-5\n"),
        ("{range .Book[*]}{range @.*}({@}){end};{end}", {"Book": [[1, 2], [3]]}, "(1)(2);(3);"),
        ("{.x[?(@.a==1)]}", {"x": [{"a": True}, {"a": "1"}, {"a": 1.0}]}, '{"a":1.0}'),
    ],
)
def test_it_chooses_as_kubectl_does(template: str, document: Any, text: str) -> None:
    assert choose(template, document) == text


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{hello}", "'hello' is no path"),
        ("{.Book[?(@.Price<>10)]}", "'>10' is no constant"),
        ("{range .Labels.*}{@}{end}{end}", "{end} without {range}"),
        ("{range .Book[*]}{.Author}", "{range} without {end}"),
        ("{.Book[one]}", "[one] is no index"),
        ("{.Book", "a brace is not closed"),
        ('{"\\q"}', "has an escape that is none"),
    ],
)
def test_what_is_no_template_is_named(template: str, problem: str) -> None:
    with pytest.raises(UsageError) as refused:
        choose(template, STORE)
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("words", "template", "text"),
    [
        ("get", "{.nodes[*].node}", "node-1 node-2"),
        ("get --summary", "{.policies[0].nodes}", "2"),
        ("get node-1", "{.nodes[0].containers[*].cpus}", "2-3"),
        ("explain a", "{.explanations[0].subject}", "pod default/a"),
    ],
)
def test_commands_print_what_is_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, template: str, text: str
) -> None:
    (tmp_path / "now.json").write_text(cluster(pod_body("a", "2")).dump())
    given = [*words.split(), "--cluster", str(tmp_path / "now.json")]
    main([*given, "-o", f"jsonpath={template}"])
    assert capsys.readouterr().out == text


def test_a_wrong_template_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "now.json").write_text(json.dumps({"kind": "List", "items": []}))
    assert main(["get", "-o", "jsonpath={x}", "--cluster", str(tmp_path / "now.json")]) == 2
    assert "'x' is no path" in capsys.readouterr().err
