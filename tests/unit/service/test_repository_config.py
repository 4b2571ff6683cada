"""What a repository can say in its `.mergeyard.toml`, and what it hears when it says it wrongly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeyard.ports.git import TooLargeFile
from mergeyard.service.repository_config import (
    Broken,
    PathTargets,
    RepositoryConfig,
    Unmatched,
    absent,
    guarded_paths,
    parse,
)

A_GLOB = 'expected globs of at most 255 characters, from the root, such as "ci/**"'


def config(text: str) -> RepositoryConfig:
    answer = parse(text.encode())
    assert isinstance(answer, RepositoryConfig)
    return answer


def words(text: str) -> str:
    answer = parse(text.encode())
    assert isinstance(answer, Broken)
    return answer.words


# What can be said


def test_required_statuses_are_what_must_pass():
    text = 'version = 1\nrequired_statuses = ["unit", "lint"]\n[checks]\nunit = "make test"\n'
    assert config(text) == RepositoryConfig(("unit", "lint"), {"unit": "make test"})


def test_without_required_statuses_all_checks_are_required():
    text = 'version = 1\n[checks]\nunit = "make test"\nlint = "make lint"\n'
    assert config(text) == RepositoryConfig(("unit", "lint"), {"unit": "make test", "lint": "make lint"})


def test_a_status_that_is_named_twice_is_required_once():
    assert config('version = 1\nrequired_statuses = ["b", "a", "b"]').required_statuses == ("b", "a")


def test_a_file_that_asks_for_nothing_says_as_much_as_none():
    assert config("version = 1") == absent() == parse(None) == RepositoryConfig((), {})


def test_a_command_may_have_many_lines():
    assert config('version = 1\n[checks]\nunit = """\nmake\nmake test\n"""').checks == {"unit": "make\nmake test\n"}


def test_targets_are_named_with_the_globs_of_their_paths():
    text = 'version = 1\n[targets]\napp = ["app/**", "lib/**"]\n"//docs:all" = ["*.md"]\nALL = ["Makefile"]\n'
    globs = {"app": ("app/**", "lib/**"), "//docs:all": ("*.md",), "ALL": ("Makefile",)}
    assert config(text).targets == PathTargets(globs, Unmatched.ALL)


@pytest.mark.parametrize("word", Unmatched)
def test_what_no_glob_covers_is_decided_in_one_word(word: Unmatched):
    assert config(f'version = 1\n[targets]\nunmatched = "{word}"').targets == PathTargets({}, word)


def test_a_glob_may_hold_brackets_spaces_and_line_breaks():
    assert config(r"""version = 1
targets.app = ["app/[id]/**", " a", "a\nb"]""").targets == PathTargets({"app": ("app/[id]/**", " a", "a\nb")})


def test_without_guarded_paths_the_files_of_ci_and_the_file_itself_are_guarded():
    guarded = config("version = 1").guarded_paths
    assert guarded == guarded_paths(None) == guarded_paths(b"not toml")
    assert {".mergeyard.toml", ".github/workflows/**", ".gitlab-ci.yml", "Jenkinsfile"} <= set(guarded)


def test_guarded_paths_replace_the_default_but_the_file_itself_stays_guarded():
    assert config('version = 1\nguarded_paths = ["ci/**", "ci/**"]').guarded_paths == (".mergeyard.toml", "ci/**")
    assert guarded_paths(b"version = 1\nguarded_paths = []") == (".mergeyard.toml",)


def test_windows_line_ends_are_fine():
    assert config('version = 1\r\nrequired_statuses = ["unit"]\r\n').required_statuses == ("unit",)


# What cannot


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "line 1, version: missing; write version = 1"),
        ("\nversion = 2", "line 2, version: expected 1, the only version there is"),
        ("version = true", "line 1, version: expected the number 1"),
        ('version = "1"', "line 1, version: expected the number 1"),
        ("version = 1.0", "line 1, version: expected the number 1"),
        ("version = 1\n\nrequired_statuses = 3", "line 3, required_statuses: expected a list of strings"),
        ('version = 1\nrequired_statuses = "unit"', "line 2, required_statuses: expected a list of strings"),
        ("version = 1\nrequired_statuses = [1]", "line 2, required_statuses: expected a list of strings"),
        ("version = 1\nrequired_statuses = [2026-01-01]", "line 2, required_statuses: expected a list of strings"),
        ("version = 1\n[required_statuses]\na = 1", "line 2, required_statuses: expected a list of strings"),
        (
            "version = 1\nrequired_statuses = []",
            "line 2, required_statuses: expected at least one status; leave the key out to require all of [checks]",
        ),
        (
            'version = 1\nrequired_statuses = ["unit", " "]',
            "line 2, required_statuses: expected names of 1 to 255 printable characters",
        ),
        (
            'version = 1\nrequired_statuses = ["a\\nb"]',
            "line 2, required_statuses: expected names of 1 to 255 printable characters",
        ),
        (
            'version = 1\nchecks = ["make"]',
            'line 2, checks: expected a table of commands, such as [checks] and unit = "make test" below it',
        ),
        ("version = 1\n[checks]\nunit = 3", "line 3, checks.unit: expected a command as a string"),
        ("version = 1\nchecks.unit = 3", "line 2, checks.unit: expected a command as a string"),
        ("version = 1\n[checks.unit]\nrun = 'x'", "line 2, checks.unit: expected a command as a string"),
        ("version = 1\n[checks]\nunit = ' '", "line 3, checks.unit: expected a command that a shell can run"),
        ('version = 1\n[checks]\nunit = "a\\u0000"', "line 3, checks.unit: expected a command that a shell can run"),
        (
            'version = 1\n[checks]\n"a\\u001bb" = "x"',
            "line 3, checks.'a\\x1bb': expected a name of 1 to 255 printable characters",
        ),
        (
            'version = 1\ntargets = ["app"]',
            'line 2, targets: expected a table of globs, such as [targets] and app = ["app/**"] below it',
        ),
        ("version = 1\n[targets]\napp = 3", "line 3, targets.app: expected a list of at least one glob"),
        ("version = 1\n[targets]\napp = []", "line 3, targets.app: expected a list of at least one glob"),
        ("version = 1\n[targets]\napp = 'app/**'", "line 3, targets.app: expected a list of at least one glob"),
        (
            "version = 1\n[targets]\n'' = ['a']",
            "line 3, targets.'': expected a name of 1 to 255 printable characters",
        ),
        ("version = 1\n[targets]\nunmatched = 'all'", "line 3, targets.unmatched: expected one of ALL, ignore, path"),
        ("version = 1\n[targets]\nunmatched = ['a']", "line 3, targets.unmatched: expected one of ALL, ignore, path"),
        (
            'version = 1\n"" = 1',
            "line 2, '': unknown key; known are version, required_statuses, checks, targets, guarded_paths",
        ),
        (
            "version = 1\nguarded_paths = 'ci'",
            "line 2, guarded_paths: expected a list of globs; [] guards only this file",
        ),
        (f"version = 1\nguarded_paths = {['a'] * 101}", "line 2, guarded_paths: expected at most 100 globs"),
        (f"version = 1\nguarded_paths = ['{'a' * 256}']", f"line 2, guarded_paths: {A_GLOB}"),
        ("version = 1\nguarded_paths = ['/ci']", f"line 2, guarded_paths: {A_GLOB}"),
        ("version = 1\nguarded_paths = ['']", f"line 2, guarded_paths: {A_GLOB}"),
        (
            'version = 1\nrequired_status = ["unit"]',
            "line 2, required_status: unknown key (did you mean required_statuses?)",
        ),
        ("version = 1\n[check]\nunit = 'make'", "line 2, check: unknown key (did you mean checks?)"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_key(text: str, expected: str):
    assert words(text) == f".mergeyard.toml {expected}"


@pytest.mark.parametrize(
    "glob", ["", " ", "/app/**", "./app", "../app", "!app/**", "{app,lib}/**", r"app\\**", r"a\u0000"]
)
def test_a_glob_that_would_not_do_what_it_seems_to_say_is_told(glob: str):
    expected = 'targets.app: expected globs of paths from the root of the repository, such as "app/**/*.py"'
    assert words(f'version = 1\n[targets]\napp = ["ok", "{glob}"]') == f".mergeyard.toml line 3, {expected}"


def test_what_is_no_toml_is_told_with_its_line():
    assert words("version = 1\nx =") == ".mergeyard.toml line 2: not valid TOML: Invalid value"
    assert parse(b"version = 1\n\xff") == Broken(".mergeyard.toml line 2: not UTF-8; save it as UTF-8")


def test_a_byte_order_mark_is_told():
    answer = parse(b"\xef\xbb\xbfversion = 1")
    assert answer == Broken(".mergeyard.toml line 1: starts with a byte order mark; save it as UTF-8 without one")


def test_several_mistakes_are_told_together_but_not_hundreds():
    assert words("version = 2\nrequired_statuses = 1").count("; ") == 1
    many = words("".join(f"zebra{number} = 1\n" for number in range(500)))
    assert many.endswith("; and more")
    assert len(many) < 500


def test_64_kib_are_read_and_not_one_byte_more():
    text = b"version = 1\n#" + b"x" * (64 * 1024 - 13)
    assert parse(text) == absent()
    assert parse(text + b"x") == Broken(".mergeyard.toml: 65537 bytes are too many; 65536 are allowed")


@given(st.binary() | st.text().map(lambda text: f"version = 1\n{text}".encode()))
def test_no_content_is_trouble(content: bytes):
    assert isinstance(parse(content), RepositoryConfig | Broken)


def test_a_file_that_was_too_large_to_be_read_is_broken():
    assert parse(TooLargeFile(100_000)) == Broken(".mergeyard.toml: 100000 bytes are too many; 65536 are allowed")
