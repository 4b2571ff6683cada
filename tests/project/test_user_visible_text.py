"""No text that a user reads contains a word that vocabulary or spelling forbid.

Collects messages, pages, help, API descriptions, alerts and documentation; code in the documentation is left out.
"""

import ast
import json
import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from jinja2 import Environment, nodes
from typer.core import TyperGroup
from typer.main import get_group

from mergeyard.api import openapi, routes
from mergeyard.api.endpoint import Handler
from mergeyard.cli import app

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "mergeyard"
TEMPLATES = SOURCE / "web" / "templates"
STATIC = SOURCE / "web" / "static"
RULES = ROOT / "deploy" / "prometheus" / "rules.yml"
GRAFANA = ROOT / "deploy" / "grafana" / "mergeyard.json"
SAMPLE_REPOSITORY = SOURCE / "cli" / "demo" / "sample_repository.py"
FOR_CONTRIBUTORS = ("docs/contribute/", "docs/decisions/", "CONTRIBUTING.md", "make ")

Text = tuple[str, str]
"""Where it is, and what it is."""

# Written in parts, so that this file does not contain what tests/project/test_vocabulary.py forbids.
ANYWHERE = {
    r"(?:no|some|every|any)" + "body": "the actor: a user, a pull request, no process",
    r"who" + "(?:ever|m)": "the actor: a user, a pull request, no process",
    r"up" + "on": "on, on top of",
    r"bene" + "ath": "below, ahead",
    r"beside(?!s)": "next to, in addition to",
    r"ane" + "w": "again",
    r"dear": "expensive",
    r"no more(?! than)": "no longer",
    r"for ever": "indefinitely",
    r"shall": "must, should",
    r"the very(?! (?:first|last))": "that exact",
    r"guilty|accused": "culprit, failed",
    r"(?:longest|this|these|its|each|earlier|all) stays?": "submission",
    r"sto" + "reys?": "layer",
    r"rooms?|doors?|scribes?": "the name of the part",
    r"wish(?:es|ed)?": "option, request",
    r"(?:take|takes|taken|taking|took) (?:it |one |them |#\S+ )?out": "remove from the queue",
    r"lets? (?:it |them )?in": "admit",
    r"(?<!bold )red|green(?! tea)": "failed, passed",
    r"(?:stands?|stood) (?:in|on|at|first|behind|ahead)": "is",
    r"not to be believed|tells nonsense": "what is wrong",
    r"hitherto|thereof|lest|albeit|whilst|amongst|betwixt": "a plain word",
    r"colou?red|colours?": "color",
    r"behaviours?": "behavior",
    r"(?:organ|initial|serial|normal|recogn|summar|optim|minim|author|synchron|custom)is(?:e[sd]?|ing|ations?)": "-ize",
    r"licences?": "license",
    r"labell(?:ed|ing)": "labeled, labeling",
    r"cancelling": "canceling, removing",
    r"favou?rites|favours?": "favor",
    r"centres?": "center",
    r"honours?": "honor",
    r"neighbours?": "neighbor",
    r"(?:travel|signal|model)l(?:ed|ing)": "one l",
    r"catalogues?": "catalog",
    r"grey": "gray",
    r"analys(?:e[sd]?|ing)": "analyze",
    r"artefacts?": "artifact",
    r"defence": "defense",
}
FOR_USERS = {
    r"forges?|git providers?": "Git host",
    r"required status(?:es)?(?! checks?)": "required check",
    r"lands|landed": "merges, merged",
    r"judge[sd]?": "decide",
    r"says|tells|told": "shows, reports",
    r"cancelled(?=.)|(?<=.)cancelled": "removed (a pull request), stopped (a run), or the code in backquotes",
    r"behind(?! (?:a|the|your|the same) (?:reverse )?(?:proxy|load balancer|address))": "after",
}
"""Pages for contributors can use these words."""


def compile_words(words: dict[str, str]) -> dict[re.Pattern[str], str]:
    return {re.compile(rf"(?<![\w-])(?:{word})(?![\w-])", re.IGNORECASE): instead for word, instead in words.items()}


ANYWHERE_PATTERNS, USER_PATTERNS = compile_words(ANYWHERE), compile_words(ANYWHERE | FOR_USERS)


def find_banned(texts: Iterable[Text]) -> list[str]:
    return [
        f"{place}: write {instead!r} instead of {found.group()!r} in {text[max(0, found.start() - 40) :][:100]!r}"
        for place, text in texts
        for pattern, instead in (ANYWHERE_PATTERNS if place.startswith(FOR_CONTRIBUTORS) else USER_PATTERNS).items()
        if (found := pattern.search(text))
    ]


# Python: every literal that is not a docstring: reasons, comments, refusals, settings, names of log events.


def collect_literals(source: str, place: str) -> Iterator[Text]:
    tree = ast.parse(source)
    ignored = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr(values=parts):
                ignored |= {id(part) for part in parts}
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)
                yield f"{place}:{node.lineno}", text
            case ast.Call(func=ast.Attribute(value=ast.Name(id="log")), args=[ast.Constant(value=str() as event)]):
                yield f"{place}:{node.lineno}", event.replace("_", " ")
            case ast.Constant(value=str() as text) if id(node) not in ignored and (" " in text or text.istitle()):
                yield f"{place}:{node.lineno}", text
            case _:
                pass


def messages() -> Iterator[Text]:
    for path in sorted({*SOURCE.rglob("*.py")} - {SAMPLE_REPOSITORY}):
        yield from collect_literals(path.read_text(), str(path.relative_to(ROOT)))


# Pages: text, the attributes that users see, and literals inside of expressions; texts of scripts.

VISIBLE_ATTRIBUTES = ("title", "aria-label", "placeholder", "alt")


class VisibleText(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.texts += [value for name, value in attrs if value and name in VISIBLE_ATTRIBUTES]

    def handle_data(self, data: str) -> None:
        self.texts.append(" ".join(data.split()))


def collect_template(source: str, place: str) -> Iterator[Text]:
    tree, html = Environment().parse(source), VisibleText()
    html.feed("".join(node.data for node in tree.find_all(nodes.TemplateData)))
    constants = [node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)]
    for text in (*html.texts, *(constant for constant in constants if " " in constant or constant.istitle())):
        yield place, text


def pages() -> Iterator[Text]:
    for path in sorted(TEMPLATES.rglob("*.html")):
        yield from collect_template(path.read_text(), str(path.relative_to(ROOT)))
    for path in sorted(STATIC.glob("*.js")):
        for text in re.findall(r"""["'`]([^"'`\n]* [^"'`\n]*)["'`]""", path.read_text()):
            yield str(path.relative_to(ROOT)), text


# The command line and the API: as they are shown.


def collect_help(group: TyperGroup, name: str) -> Iterator[Text]:
    for command in (group, *group.commands.values()):
        place = f"help of {name} {command.name}"
        yield place, f"{command.help} {command.short_help} {command.epilog}"
        for parameter in command.params:
            yield place, str(getattr(parameter, "help", ""))
        if isinstance(command, TyperGroup) and command is not group:
            yield from collect_help(command, f"{name} {command.name}")


def command_help() -> Iterator[Text]:
    return collect_help(get_group(app), "mergeyard")


async def unused_handler(*_: Any) -> Any: ...


def collect_descriptions(value: object, place: str) -> Iterator[Text]:
    match value:
        case dict():
            for key, member in cast(dict[str, object], value).items():
                if key in ("description", "summary", "title") and isinstance(member, str):
                    yield place, member
                elif key not in ("example", "examples", "enum"):
                    yield from collect_descriptions(member, f"{place}/{key}")
        case list():
            for member in cast(list[object], value):
                yield from collect_descriptions(member, place)
        case _:
            pass


def api_descriptions() -> Iterator[Text]:
    handlers: dict[str, Handler] = dict.fromkeys(routes.TABLE, unused_handler)
    return collect_descriptions(openapi.build_document(routes.build_endpoints(handlers)), "openapi")


# For operators and contributors.


def alerts() -> Iterator[Text]:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            for text in rule.get("annotations", {}).values():
                yield f"{RULES.name} {rule['alert']}", text
    yield from collect_descriptions(json.loads(GRAFANA.read_text()), GRAFANA.name)


def make_targets() -> Iterator[Text]:
    for target, text in re.findall(r"^([a-z-]+):.*## (.*)", (ROOT / "Makefile").read_text(), re.MULTILINE):
        yield f"make {target}", text


def strip_code(page: str) -> str:
    """Without code, addresses and comments; lines keep their numbers."""
    code = re.compile(r"^( *)```.*?^\1```|`[^`]*`|<!--.*?-->", re.MULTILINE | re.DOTALL)
    page = code.sub(lambda found: "…" + "\n" * found.group().count("\n"), page)
    return re.sub(r"\]\([^)]*\)|https?://\S+", "]", page)


def documentation() -> Iterator[Text]:
    files = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "changes").glob("*.md"))
    for path in sorted(files):
        for number, line in enumerate(strip_code(path.read_text()).splitlines(), 1):
            yield f"{path.relative_to(ROOT)}:{number}", line


def pictures() -> Iterator[Text]:
    for path in sorted((ROOT / "docs" / "pictures").glob("*.svg")):
        for text in re.findall(r"<(?:text|tspan|title|desc)[^>]*>([^<]+)<", path.read_text()):
            yield str(path.relative_to(ROOT)), text


SOURCES = {
    "messages": (messages, 2000),
    "pages": (pages, 400),
    "help": (command_help, 150),
    "api": (api_descriptions, 200),
    "alerts": (alerts, 20),
    "make": (make_targets, 20),
    "documentation": (documentation, 2000),
    "pictures": (pictures, 50),
}


@pytest.mark.parametrize("source", SOURCES)
def test_no_text_contains_a_banned_word(source: str):
    collect, at_least = SOURCES[source]
    texts = list(collect())
    assert len(texts) >= at_least, "the texts are no longer found"
    problems = find_banned(texts)
    assert not problems, "\n".join(["", *problems])


def log_calls() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="log"), attr="warning" | "error" | "info")):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node
                case _:
                    pass


def test_every_log_event_is_a_name_with_its_data_in_fields():
    """`problem`, `words` and `message` are other names for `error`."""
    for place, call in log_calls():
        event = call.args[0]
        if isinstance(event, ast.Constant):
            assert re.fullmatch(r"[a-z]+(_[a-z]+)*", str(event.value)), place
        assert {keyword.arg for keyword in call.keywords}.isdisjoint({"problem", "words", "message", "trouble"}), place


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (collect_literals('raise Refused(f"Ask {x}, they shall know.")', "a.py"), "shall"),
        (collect_literals('log.warning("red_run", error="x")', "a.py"), "red"),
        (collect_template('<p title="The colour {{ x }}">x</p>', "a.html"), "colour"),
        (collect_template("{{ 'The guilty one' if x else '' }}", "a.html"), "guilty"),
        (collect_template("<p>Take it out</p>", "a.html"), "Take it out"),
        (collect_descriptions({"a": [{"description": "No more runs."}]}, "openapi"), "No more"),
        ([("docs/a.md:1", strip_code("All [runs](red.md) are `green` or red."))], "red"),
        ([("docs/a.md:1", "A forge that lands.")], "forge"),
    ],
)
def test_a_banned_word_is_found_with_its_replacement(found: Iterable[Text], word: str):
    problems = find_banned(found)
    assert any(f"instead of {word!r}" in problem and "write " in problem for problem in problems)


@pytest.mark.parametrize(
    "found",
    [
        collect_literals('"""They shall know."""\nx = "shall"', "a.py"),
        collect_template("<p class='red dear'>x {# shall #}</p>", "a.html"),
        [("docs/a.md:1", strip_code("```\nshall\n```\nno more than `red`, besides, Gitlab-red"))],
        [("docs/contribute/a.md:1", "A forge lands commits.")],
    ],
)
def test_code_and_other_words_are_not_found(found: Iterable[Text]):
    assert find_banned(found) == []
