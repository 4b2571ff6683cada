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
FILES = ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml")

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
    "signing",
    *("batching", "escaping", "framing", "landing", "loading", "logging", "merging", "missing", "monitoring"),
    *("parsing", "polling", "presenting", "rendering", "scheduling", "testing", "wiring"),
}


@pytest.fixture(scope="module")
def files() -> list[Path]:
    in_folders = [
        path
        for folder, suffixes in FOLDERS.items()
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in suffixes and not path.is_relative_to(VENDORED)
    ]
    return [*in_folders, *(ROOT / name for name in FILES)]


def test_no_file_uses_a_banned_word(files: list[Path]):
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files
        if BANNED.search(text := path.read_text())
        for number, line in enumerate(text.splitlines(), 1)
        if BANNED.search(line)
    ]
    assert found == []


def test_no_module_is_named_by_a_gerund(files: list[Path]):
    names = {path: path.stem.removeprefix("test_").split("_")[-1] for path in files if path.suffix == ".py"}
    assert [path for path, name in names.items() if name.endswith("ing") and name not in NOUNS_IN_ING] == []
