"""Every regular expression of the product takes linear time, whatever text it is given.

The expressions are found in the source: each use of `re` must be a module constant, a literal in a call, or be named
below. Each is run with the methods that the product calls on it, on long repetitions of its own characters.
"""

import ast
import re
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from time import process_time
from types import FrameType
from typing import Any, NamedTuple

import pytest

import mergeyard

PACKAGE = Path(mergeyard.__file__).parent
BUILT_AT_RUNTIME = {"cli/targets.py"}
"""Built from the globs of the user of the command, on that user's own machine and paths."""
METHODS = frozenset({"match", "fullmatch", "search", "findall", "finditer", "sub", "subn", "split"})
CONSTANTS = frozenset({"Pattern", "Match", "escape", "error"}) | {flag.name for flag in re.RegexFlag if flag.name}
IMPORT_OF_RE = re.compile(r"^\s*(?:import|from) re\b", re.MULTILINE)
TYPICAL = " \t\na0*[]{}()-_./\\\"'#<:@`\x1b"
STEP = 4
SIZES = (1 << 9, 1 << 11, 1 << 13)
LARGEST = 1 << 20
GROWTH = 9
"""Maximum growth of the time from one size to the next. Linear expressions have 4, quadratic ones 16."""
NOISE_S = 0.002
TOO_LONG_S = 1.0
TOO_LONG_FOR_THE_LARGEST_S = 5.0


class Expression(NamedTuple):
    place: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]

    def __str__(self) -> str:
        return self.place


class TooSlowError(Exception):
    """One call took longer than any linear expression needs for a megabyte."""


def collect_expressions(sources: dict[str, str]) -> list[Expression]:
    """Raises when an expression is made in a way that this test does not understand."""
    trees = parse_modules_with_expressions(sources)
    constants = {place: set(compiled_constants(tree)) for place, tree in trees.items()}
    used = collect_uses(trees)
    found: list[Expression] = []
    for place, tree in trees.items():
        for name in sorted(constants[place]):
            methods = used.get((place, name), set())
            assert methods, f"{place}: no call of {name} was found; this test must know how it is used"
            pattern = getattr(import_module(module_of(place)), name)
            found.append(Expression(f"{place}:{name}", pattern, frozenset(methods)))
        found.extend(literals(place, tree, constants[place]))
    return found


def parse_modules_with_expressions(sources: dict[str, str]) -> dict[str, ast.Module]:
    """Modules that import `re` and modules that name their constants: every test run begins with this."""
    trees = {place: ast.parse(source) for place, source in sources.items() if IMPORT_OF_RE.search(source)}
    names = {name for tree in trees.values() for name in compiled_constants(tree)}
    if names:
        named = re.compile(rf"\b(?:{'|'.join(names)})\b")
        trees |= {place: ast.parse(of) for place, of in sources.items() if place not in trees and named.search(of)}
    return trees


def module_of(place: str) -> str:
    return ".".join(("mergeyard", *place.removesuffix(".py").removesuffix("/__init__").split("/")))


def compiled_constants(tree: ast.Module) -> Iterator[str]:
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func)) if is_of_re(func, {"compile"}):
                yield name
            case _:
                pass


def is_of_re(node: ast.expr, names: set[str] | frozenset[str]) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id == "re" and node.attr in names)
    )


def literals(place: str, tree: ast.Module, constants: set[str]) -> Iterator[Expression]:
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "re"]
    assert not imports, f"{place}: write `import re`, so that this test finds its expressions"
    known = {id(node.value) for node in tree.body if isinstance(node, ast.Assign) and is_constant(node, constants)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "re":
            assert node.attr in METHODS | CONSTANTS | {"compile"}, f"{place}: re.{node.attr} is unknown to this test"
        if not isinstance(node, ast.Call) or id(node) in known or not is_of_re(node.func, METHODS | {"compile"}):
            continue
        if place in BUILT_AT_RUNTIME and not isinstance(node.args[0], ast.Constant):
            continue
        assert isinstance(node.args[0], ast.Constant), f"{place}:{node.lineno}: make it a constant of the module"
        assert isinstance(node.func, ast.Attribute)
        method = "search" if node.func.attr == "compile" else node.func.attr
        text = node.args[0].value
        assert isinstance(text, str)
        yield Expression(f"{place}:{node.lineno}", re.compile(text), frozenset({method}))


def is_constant(node: ast.Assign, constants: set[str]) -> bool:
    return isinstance(node.targets[0], ast.Name) and node.targets[0].id in constants


def collect_uses(trees: dict[str, ast.Module]) -> dict[tuple[str, str], set[str]]:
    """Which methods are read from each constant, in its own module or where it is imported."""
    used: dict[tuple[str, str], set[str]] = {}
    places = {module_of(place): place for place in trees}
    for place, tree in trees.items():
        origins = {
            alias.asname or alias.name: (places[node.module], alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module in places
            for alias in node.names
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in METHODS:
                key = origins.get(node.value.id, (place, node.value.id))
                used.setdefault(key, set()).add(node.attr)
    return used


def find_parts(pattern: re.Pattern[Any]) -> tuple[set[str], set[str]]:
    """The characters that an expression names, and the literal words in it."""
    text = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    parsed: Any = re._parser.parse(text, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else 0)  # type: ignore[attr-defined]  # pyright: ignore
    characters: set[str] = set()
    words: set[str] = set()
    walk_parts(parsed, characters, words)
    return characters, words


def walk_parts(node: Any, characters: set[str], words: set[str]) -> str:
    """Returns the literals of a sequence without what is between them: a word too if that is optional."""
    word = skeleton = ""
    for operation, argument in node:
        name = str(operation)
        if name == "LITERAL":
            characters.add(chr(argument))
            word, skeleton = word + chr(argument), skeleton + chr(argument)
            continue
        words.add(word)
        word = ""
        if name in {"IN", "NOT_LITERAL", "RANGE", "CATEGORY", "NEGATE"}:
            characters.update(characters_of(operation, argument))
        else:
            inner = [walk_parts(each, characters, words) for each in inner_patterns(argument)]
            skeleton += "" if name in {"MAX_REPEAT", "MIN_REPEAT"} or not inner else inner[0]
    words.update({word, skeleton})
    words.difference_update({each for each in words if len(each) < 2})
    return skeleton


def characters_of(operation: Any, argument: Any) -> Iterator[str]:
    match str(operation):
        case "IN":
            for inner, value in argument:
                yield from characters_of(inner, value)
        case "LITERAL" | "NOT_LITERAL":
            yield chr(argument)
        case "RANGE":
            yield from map(chr, argument)
        case _:
            yield from "a0 \t\n_é"


def inner_patterns(argument: Any) -> Iterator[Any]:
    if isinstance(argument, re._parser.SubPattern):  # type: ignore[attr-defined]  # pyright: ignore
        yield argument
    elif isinstance(argument, tuple | list):
        for each in argument:  # pyright: ignore[reportUnknownVariableType]
            yield from inner_patterns(each)


class Attack(NamedTuple):
    """A text of any size: a unit that is repeated between a beginning and an end."""

    beginning: str
    unit: str
    end: str

    def text(self, pattern: re.Pattern[Any], size: int) -> str | bytes:
        text = self.beginning + (self.unit * (size // len(self.unit) + 1))[:size] + self.end
        return text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text


def attacks(pattern: re.Pattern[Any]) -> Iterator[Attack]:
    characters, words = find_parts(pattern)
    for unit in sorted(characters | set(TYPICAL) | words):
        yield Attack("", unit, "")
        yield Attack("", unit, "\0")
    for word in sorted(words):
        for unit in " a0\n":
            yield Attack("", word + unit, "")
            yield Attack(word, unit, "")


def run_on(pattern: re.Pattern[Any], method: str, text: str | bytes) -> None:
    match method:
        case "sub" | "subn":
            pattern.sub(text[:0], text)
        case "finditer":
            for _ in pattern.finditer(text):
                pass
        case _:
            getattr(pattern, method)(text)


def measure(pattern: re.Pattern[Any], method: str, text: str | bytes, limit_s: float = TOO_LONG_S) -> float:
    with time_limit(limit_s):
        started_at = process_time()
        run_on(pattern, method, text)
        return process_time() - started_at


@contextmanager
def time_limit(limit_s: float) -> Generator[None]:
    """In processor time: an expression looks for signals while it runs."""

    def stop(_: int, __: FrameType | None) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def find_slow_input(expression: Expression) -> str | None:
    """What makes it take more than linear time; None when nothing does."""
    pattern = expression.pattern
    for method in sorted(expression.methods):
        slowest: dict[float, Attack] = {}
        for attack in attacks(pattern):
            try:
                slow, took = grows_too_fast(pattern, method, attack)
            except TooSlowError:
                return f"{method}, {attack}: longer than {TOO_LONG_S} s"
            if slow:
                return f"{method}, {attack}: {took:.3f} s for {SIZES[-1]} characters"
            slowest[took] = attack
        worst = slowest[max(slowest)]
        try:
            measure(pattern, method, worst.text(pattern, LARGEST), TOO_LONG_FOR_THE_LARGEST_S)
        except TooSlowError:
            return f"{method}, {LARGEST} characters, {worst}: longer than {TOO_LONG_FOR_THE_LARGEST_S} s"
    return None


def grows_too_fast(pattern: re.Pattern[Any], method: str, attack: Attack) -> tuple[bool, float]:
    before = took = NOISE_S
    for size in SIZES:
        took = measure(pattern, method, attack.text(pattern, size))
        if took > GROWTH * before:  # once more: the machine can have been busy during either measurement
            before = max(NOISE_S, best_of_three(pattern, method, attack.text(pattern, size // STEP)))
            took = best_of_three(pattern, method, attack.text(pattern, size))
            if took > GROWTH * before:
                return True, took
        before = max(NOISE_S, took)
    return False, took


def best_of_three(pattern: re.Pattern[Any], method: str, text: str | bytes) -> float:
    return min(measure(pattern, method, text) for _ in range(3))


EXPRESSIONS = collect_expressions(
    {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
)


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
def test_expression_takes_linear_time(expression: Expression):
    assert find_slow_input(expression) is None


@pytest.mark.parametrize(
    ("slow", "method"),
    [
        pytest.param(r"\*{3,}NO_CI\*{3,}", "sub", marks=pytest.mark.long),
        (r"(a+)+b", "match"),
        (r"\s*\n", "split"),
        pytest.param(r"x*x*x*y", "fullmatch", marks=pytest.mark.long),
        pytest.param(r"packfile .* is", "search", marks=pytest.mark.long),
    ],
)
def test_slow_expression_is_found(slow: str, method: str):
    assert find_slow_input(Expression("planted", re.compile(slow), frozenset({method})))


@pytest.mark.parametrize(
    "source",
    [
        "import re\ndef f(x):\n    return re.search(x, 'a')\n",
        "import re\nA = re.compile('a')\n",
        "from re import compile\n",
        "import re\nre.template('a')\n",
    ],
)
def test_expression_that_cannot_be_collected_is_an_error(source: str):
    with pytest.raises(AssertionError):
        collect_expressions({"logging.py": source})
