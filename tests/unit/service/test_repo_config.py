"""Parsing of `.mergeyard.toml`, which untrusted authors write, and the error messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeyard.ports.git import TooLargeFile
from mergeyard.service.commit_messages import TEMPLATE_FIELDS
from mergeyard.service.repo_config import (
    InvalidConfig,
    PathTargets,
    RepositoryConfig,
    UnmatchedPolicy,
    parse_config,
    parse_guarded_paths,
)

A_GLOB = 'expected globs of at most 255 characters, from the root, such as "ci/**"'


def parsed(text: str) -> RepositoryConfig:
    result = parse_config(text.encode())
    assert isinstance(result, RepositoryConfig)
    return result


def error_message(text: str) -> str:
    result = parse_config(text.encode())
    assert isinstance(result, InvalidConfig)
    return result.message


# Valid files


def test_required_statuses_are_read():
    text = 'version = 1\nrequired_statuses = ["unit", "lint"]\n[checks]\nunit = "make test"\n'
    assert parsed(text) == RepositoryConfig(("unit", "lint"), {"unit": "make test"})


def test_without_required_statuses_all_checks_are_required():
    text = 'version = 1\n[checks]\nunit = "make test"\nlint = "make lint"\n'
    assert parsed(text) == RepositoryConfig(("unit", "lint"), {"unit": "make test", "lint": "make lint"})


def test_a_status_that_is_named_twice_is_required_once():
    assert parsed('version = 1\nrequired_statuses = ["b", "a", "b"]').required_statuses == ("b", "a")


def test_a_file_with_only_a_version_equals_no_file():
    assert parsed("version = 1") == RepositoryConfig() == parse_config(None)


def test_a_command_can_have_several_lines():
    assert parsed('version = 1\n[checks]\nunit = """\nmake\nmake test\n"""').checks == {"unit": "make\nmake test\n"}


def test_the_template_of_squashed_commits_is_read():
    text = 'version = 1\n[commit]\nsquash = """\n{title}\n\n{{x}} {body}\n"""'
    assert parsed(text).squash_template == "{title}\n\n{{x}} {body}\n"
    assert parsed("version = 1\n[commit]").squash_template == ""


def test_targets_are_named_with_the_globs_of_their_paths():
    text = 'version = 1\n[targets]\napp = ["app/**", "lib/**"]\n"//docs:all" = ["*.md"]\nALL = ["Makefile"]\n'
    globs = {"app": ("app/**", "lib/**"), "//docs:all": ("*.md",), "ALL": ("Makefile",)}
    assert parsed(text).path_targets == PathTargets(globs, UnmatchedPolicy.ALL)


@pytest.mark.parametrize("policy", UnmatchedPolicy)
def test_the_unmatched_policy_is_read(policy: UnmatchedPolicy):
    assert parsed(f'version = 1\n[targets]\nunmatched = "{policy}"').path_targets == PathTargets({}, policy)


def test_a_glob_can_contain_brackets_spaces_and_line_breaks():
    assert parsed(r"""version = 1
targets.app = ["app/[id]/**", " a", "a\nb"]""").path_targets == PathTargets({"app": ("app/[id]/**", " a", "a\nb")})


def test_without_guarded_paths_the_files_of_ci_and_the_file_itself_are_guarded():
    guarded = parsed("version = 1").guarded_paths
    assert guarded == parse_guarded_paths(None) == parse_guarded_paths(b"not toml")
    assert {".mergeyard.toml", ".github/workflows/**", ".gitlab-ci.yml", "Jenkinsfile"} <= set(guarded)


def test_guarded_paths_replace_the_default_but_the_file_itself_stays_guarded():
    assert parsed('version = 1\nguarded_paths = ["ci/**", "ci/**"]').guarded_paths == (".mergeyard.toml", "ci/**")
    assert parse_guarded_paths(b"version = 1\nguarded_paths = []") == (".mergeyard.toml",)


def test_windows_line_ends_are_fine():
    assert parsed('version = 1\r\nrequired_statuses = ["unit"]\r\n').required_statuses == ("unit",)


# Invalid files


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "version: missing; write version = 1"),
        ("\nversion = 2", "version: expected 1, the only version there is"),
        ("version = true", "version: expected the number 1"),
        ('version = "1"', "version: expected the number 1"),
        ("version = 1.0", "version: expected the number 1"),
        ("version = 1\n\nrequired_statuses = 3", "required_statuses: expected a list of strings"),
        ('version = 1\nrequired_statuses = "unit"', "required_statuses: expected a list of strings"),
        ("version = 1\nrequired_statuses = [1]", "required_statuses: expected a list of strings"),
        ("version = 1\nrequired_statuses = [2026-01-01]", "required_statuses: expected a list of strings"),
        ("version = 1\n[required_statuses]\na = 1", "required_statuses: expected a list of strings"),
        (
            "version = 1\nrequired_statuses = []",
            "required_statuses: expected at least one status; leave the key out to require all of [checks]",
        ),
        (
            'version = 1\nrequired_statuses = ["unit", " "]',
            "required_statuses: expected names of 1 to 255 printable characters",
        ),
        (
            'version = 1\nrequired_statuses = ["a\\nb"]',
            "required_statuses: expected names of 1 to 255 printable characters",
        ),
        (
            'version = 1\nchecks = ["make"]',
            'checks: expected a table of commands, such as [checks] and unit = "make test" below it',
        ),
        ("version = 1\n[checks]\nunit = 3", "checks.unit: expected a command as a string"),
        ("version = 1\nchecks.unit = 3", "checks.unit: expected a command as a string"),
        ("version = 1\n[checks.unit]\nrun = 'x'", "checks.unit: expected a command as a string"),
        ("version = 1\n[checks]\nunit = ' '", "checks.unit: expected a command that a shell can run"),
        ('version = 1\n[checks]\nunit = "a\\u0000"', "checks.unit: expected a command that a shell can run"),
        (
            'version = 1\n[checks]\n"a\\u001bb" = "x"',
            "checks.'a\\x1bb': expected a name of 1 to 255 printable characters",
        ),
        (
            'version = 1\ntargets = ["app"]',
            'targets: expected a table of globs, such as [targets] and app = ["app/**"] below it',
        ),
        ("version = 1\n[targets]\napp = 3", "targets.app: expected a list of at least one glob"),
        ("version = 1\n[targets]\napp = []", "targets.app: expected a list of at least one glob"),
        ("version = 1\n[targets]\napp = 'app/**'", "targets.app: expected a list of at least one glob"),
        (
            "version = 1\n[targets]\n'' = ['a']",
            "targets.'': expected a name of 1 to 255 printable characters",
        ),
        ("version = 1\n[targets]\nunmatched = 'all'", "targets.unmatched: expected one of ALL, ignore, path"),
        ("version = 1\n[targets]\nunmatched = ['a']", "targets.unmatched: expected one of ALL, ignore, path"),
        (
            'version = 1\n"" = 1',
            "'': unknown key; known are version, required_statuses, checks, targets, guarded_paths, commit",
        ),
        (
            "version = 1\nguarded_paths = 'ci'",
            "guarded_paths: expected a list of globs; [] guards only this file",
        ),
        (f"version = 1\nguarded_paths = {['a'] * 101}", "guarded_paths: expected at most 100 globs"),
        (f"version = 1\nguarded_paths = ['{'a' * 256}']", f"guarded_paths: {A_GLOB}"),
        ("version = 1\nguarded_paths = ['/ci']", f"guarded_paths: {A_GLOB}"),
        ("version = 1\nguarded_paths = ['']", f"guarded_paths: {A_GLOB}"),
        (
            'version = 1\nrequired_status = ["unit"]',
            "required_status: unknown key (did you mean required_statuses?)",
        ),
        ("version = 1\n[check]\nunit = 'make'", "check: unknown key (did you mean checks?)"),
        (
            "version = 1\ncommit = '{title}'",
            'commit: expected a table, such as [commit] and squash = "{title}" below it',
        ),
        ("version = 1\n[commit]\nmerge = 'x'", "commit.merge: unknown key; known is squash"),
        (
            "version = 1\n[commit]\nsquash = ['x']",
            "commit.squash: expected a template as a string; leave the key out to use that of the queue",
        ),
        (
            "version = 1\n[commit]\nsquash = ' '",
            "commit.squash: expected a template as a string; leave the key out to use that of the queue",
        ),
        (
            "version = 1\n[commit]\nsquash = '{titel}'",
            f"commit.squash: unknown field {{titel}}; known are {', '.join(TEMPLATE_FIELDS)}",
        ),
        (
            "version = 1\n[commit]\nsquash = 'a { b'",
            "commit.squash: line 1 has a single {; write {{ for the character",
        ),
    ],
)
def test_an_error_names_its_key(text: str, expected: str):
    assert error_message(text) == f".mergeyard.toml: {expected}"


@pytest.mark.parametrize(
    "glob", ["", " ", "/app/**", "./app", "../app", "!app/**", "{app,lib}/**", r"app\\**", r"a\u0000"]
)
def test_a_glob_with_unsupported_syntax_is_an_error(glob: str):
    expected = 'targets.app: expected globs of paths from the root of the repository, such as "app/**/*.py"'
    assert error_message(f'version = 1\n[targets]\napp = ["ok", "{glob}"]') == f".mergeyard.toml: {expected}"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a = 1\nb =\n", "not valid TOML: Invalid value (at line 2, column 4)"),
        (b"a = 1\na = 2\n", "not valid TOML: Cannot overwrite a value (at line 2, column 6)"),
        (b"a = 1\n[b\n", "not valid TOML: Expected ']' at the end of a table declaration (at line 2, column 3)"),
        (b"a = '''x\n\n", "not valid TOML: Expected \"'''\" (at end of document)"),
        (b"\xef\xbb\xbfversion = 1", "starts with a byte order mark; save it as UTF-8 without one"),
        (b"a = 1\nb = '\xff'", "not UTF-8 (at line 2); save it as UTF-8"),
        ("a = 1".encode("utf-16"), "not UTF-8 (at line 1); save it as UTF-8"),
    ],
)
def test_a_syntax_error_names_its_line(content: bytes, expected: str):
    assert parse_config(content) == InvalidConfig(f".mergeyard.toml: {expected}")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a = " + "9" * 5000, "a number has thousands of digits; shorten it"),
        ("a = " + "[" * 5000, "brackets are nested too deeply; remove the inner ones"),
        ("a = " + "{b=" * 5000, "brackets are nested too deeply; remove the inner ones"),
        ("a" + ".a" * 201 + " = 1", "more than 200 dots in one line (at line 2); break the line"),
        ("[a" + ".a" * 201 + "]", "more than 200 dots in one line (at line 2); break the line"),
    ],
    ids=["digits", "arrays", "inline tables", "dotted key", "header"],
)
def test_content_that_would_exhaust_the_parser_is_an_error(value: str, expected: str):
    assert error_message(f"version = 1\n{value}") == f".mergeyard.toml: {expected}"


def test_a_line_can_have_200_dots_and_a_string_any_brackets():
    globs = ["a.b.c" + "[" * 50] * 100
    assert parsed(f"version = 1\nguarded_paths = {globs}").guarded_paths == (".mergeyard.toml", globs[0])


def test_a_long_syntax_error_is_shortened_and_keeps_its_line():
    message = error_message(f"[{'k' * 10_000}]\n" * 2)
    assert message.endswith("twice (at line 2, column 10002)")
    assert len(message) < 300


def test_several_errors_are_reported_together_up_to_a_limit():
    several = "version: expected 1, the only version there is; required_statuses: expected a list of strings"
    assert error_message("version = 2\nrequired_statuses = 1") == f".mergeyard.toml: {several}"
    many = error_message("".join(f"zebra{number} = 1\n" for number in range(500)))
    assert many.endswith("; and more")
    assert len(many) < 500


def test_the_file_can_have_at_most_64_kib():
    text = b"version = 1\n#" + b"x" * (64 * 1024 - 13)
    assert parse_config(text) == RepositoryConfig()
    assert parse_config(text + b"x") == InvalidConfig(".mergeyard.toml: 65537 bytes are too many; 65536 are allowed")


@given(
    st.binary()
    | st.text().map(lambda text: f"version = 1\n{text}".encode())
    | st.text(alphabet="ab.=[]{},'\"\\#\n 1").map(str.encode)
)
def test_no_content_raises_an_exception(content: bytes):
    assert isinstance(parse_config(content), RepositoryConfig | InvalidConfig)


def test_a_file_that_was_too_large_to_read_is_an_error():
    assert parse_config(TooLargeFile(100_000)) == InvalidConfig(
        ".mergeyard.toml: 100000 bytes are too many; 65536 are allowed"
    )
