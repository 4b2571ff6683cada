"""Code, tests and documentation use the words of the glossary, and no word that hides who acts."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {
    "src": (".py", ".sql", ".html", ".js", ".css"),
    "tests": (".py",),
    "benchmarks": (".py",),
    "tools": (".py", ".sh"),
    "docs": (".md", ".svg"),
    "changes": (".md",),
}
VENDORED = ROOT / "src" / "mergeyard" / "web" / "static" / "vendor"
FILES = [
    path
    for folder, suffixes in FOLDERS.items()
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in suffixes and not path.is_relative_to(VENDORED)
] + [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml")]

# Each word is written in two parts, so that this file does not contain what it forbids.
HIDDEN_ACTORS = ("no" + "body", "who" + "ever", "some" + "body", "every" + "body", "any" + "body", "who" + "m")
OLD_ENGLISH = ("up" + "on", "bene" + "ath", "ane" + "w")
METAPHORS = (
    "cou" + "riers?",
    "door" + "kee" + "pers?",
    "dos" + "siers?",
    "er" + "rands?",
    "farew" + "ells?",
    "kee" + "pers?",
    "land" + "scapes?",
    "letter" + "box(?:es)?",
    "mor" + "tal",
    "shel" + "ving",
    "sto" + "reys?",
    "tea" + "house",
    "vou" + "ch(?:ed|es|ing)?",
)
BANNED = re.compile(rf"(?<![a-z])(?:{'|'.join((*HIDDEN_ACTORS, *OLD_ENGLISH, *METAPHORS))})(?![a-z])", re.IGNORECASE)

NOUNS_IN_ING = {
    *("batching", "escaping", "framing", "landing", "loading", "logging", "merging", "missing", "monitoring"),
    *("parsing", "polling", "presenting", "rendering", "scheduling", "testing", "wiring"),
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_file_uses_no_banned_word(path: Path):
    lines = path.read_text().splitlines()
    assert [f"{number}: {line.strip()}" for number, line in enumerate(lines, 1) if BANNED.search(line)] == []


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if path.suffix == ".py"],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_module_is_not_named_by_a_gerund(path: Path):
    name = path.stem.removeprefix("test_").split("_")[-1]
    assert not name.endswith("ing") or name in NOUNS_IN_ING
