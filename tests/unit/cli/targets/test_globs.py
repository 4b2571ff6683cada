"""Which paths a glob covers."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeyard.cli.targets.globs import covering

PATHS = st.lists(st.text(string.ascii_lowercase + ".\n", min_size=1, max_size=3), min_size=1, max_size=5).map("/".join)


def covers(glob: str, path: str) -> bool:
    return covering([glob]).fullmatch(path) is not None


@pytest.mark.parametrize(
    ("glob", "covered", "not_covered"),
    [
        ("Makefile", ["Makefile"], ["tools/Makefile", "Makefile2", "makefile", "Makefile/x"]),
        ("*.md", ["README.md", ".md"], ["docs/a.md", "a.mdx"]),
        ("docs/*", ["docs/a", "docs/.hidden"], ["docs", "docs/a/b"]),
        ("docs/**", ["docs/a", "docs/a/b/c"], ["docs", "docs2/a", "a/docs/b"]),
        ("docs/", ["docs/a", "docs/a/b/c"], ["docs", "docs2/a"]),
        ("**", ["a", "a/b/c"], []),
        ("**/*.py", ["a.py", "b/a.py", "c/b/a.py"], ["a.pyc", "a.py/b"]),
        ("src/**/test.py", ["src/test.py", "src/a/b/test.py"], ["src/a_test.py", "test.py"]),
        ("**/tests/**", ["tests/a", "a/tests/b/c"], ["tests", "a/tests", "mytests/a"]),
        ("a**z", ["az", "abz"], ["a/z"]),
        ("?.c", ["a.c", "ü.c"], ["ab.c", ".c", "/.c"]),
        ("app/[id]/page.tsx", ["app/[id]/page.tsx"], ["app/i/page.tsx"]),
        ("a.b+c", ["a.b+c"], ["axb+c", "a.bbc"]),
        ("größe/*", ["größe/ß"], ["grosse/a"]),
    ],
)
def test_a_glob_covers_whole_paths(glob: str, covered: list[str], not_covered: list[str]):
    assert [path for path in covered if not covers(glob, path)] == []
    assert [path for path in not_covered if covers(glob, path)] == []


def test_a_line_break_is_a_character_like_any_other():
    assert covers("a/**", "a/b\nc/d")
    assert covers("*.py", "a\nb.py")
    assert not covers("a", "a\n")


def test_several_globs_cover_what_one_of_them_covers():
    either = covering(["a", "b/*"])
    assert [path for path in ("a", "b/c", "ab/c", "a/c", "b") if either.fullmatch(path)] == ["a", "b/c"]


def test_many_stars_take_no_longer_than_one():
    assert not covers("**/" * 200 + "*" * 200 + "/x", "a/" * 2000 + "y")


@given(PATHS)
def test_a_path_is_covered_by_itself_and_by_everything_above_it(path: str):
    assert covers(path, path)
    assert covers(re.sub("[^/]", "?", path), path)
    parts = path.split("/")
    assert all(covers("/".join([*parts[:depth], "**"]), path) for depth in range(len(parts)))
