"""Parses `.mergeyard.toml`: required statuses, commands of checks, targets of paths, guarded paths, commit messages.

The authors of pull requests write this file, so its size and its keys are limited. A syntax error names its line, every
other error names its key.
"""

import difflib
import tomllib
from collections.abc import Callable, Iterator
from enum import StrEnum
from itertools import islice
from typing import cast

from msgspec import Struct, ValidationError, convert

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Mirror, TooLargeFile
from mergeyard.service.commit_messages import find_template_problem

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_DOTS_PER_LINE = 200
"""tomllib takes n² steps and n² memory for a key of n parts. A key cannot continue on the next line."""
MAX_SYNTAX_ERROR_CHARS = 200

Table = dict[str, object]


class InvalidConfig(Struct, frozen=True):
    """The file cannot be used; the message tells its author where the problem is and what to do."""

    message: str


def decode_toml(content: bytes) -> Table | InvalidConfig:
    """The content must be TOML and within the limits that keep its parsing cheap."""
    if content.startswith(BYTE_ORDER_MARK):
        return InvalidConfig("starts with a byte order mark; save it as UTF-8 without one")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        return InvalidConfig(f"not UTF-8 (at line {number}); save it as UTF-8")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > MAX_DOTS_PER_LINE:
            return InvalidConfig(f"more than {MAX_DOTS_PER_LINE} dots in one line (at line {number}); break the line")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return InvalidConfig(f"not valid TOML: {shorten_error(str(error))}")
    except RecursionError:
        return InvalidConfig("brackets are nested too deeply; remove the inner ones")
    except ValueError:
        return InvalidConfig("a number has thousands of digits; shorten it")


def shorten_error(message: str) -> str:
    """Keeps the end, which names line and column; the middle can repeat a long key."""
    if len(message) <= MAX_SYNTAX_ERROR_CHARS:
        return message
    half = MAX_SYNTAX_ERROR_CHARS // 2
    return f"{message[:half]} ... {message[-half:]}"


CONFIG_FILE = ".mergeyard.toml"
UNMATCHED_KEY = "unmatched"
"""The only key in `[targets]` that is not a target."""
SQUASH_KEY = "squash"
"""The key of the template in `[commit]`."""
MAX_FILE_BYTES = 64 * 1024
MAX_PROBLEMS = 3
MAX_NAME_CHARS = 255
MAX_GUARDED_PATHS = 100
MAX_GLOB_CHARS = 255
CI_FILES = (
    ".github/workflows/**",
    ".github/actions/**",
    ".gitlab-ci.yml",
    ".gitlab/ci/**",
    ".gitea/workflows/**",
    ".gitea/actions/**",
    ".forgejo/workflows/**",
    ".forgejo/actions/**",
    ".woodpecker*",
    ".woodpecker/**",
    ".drone.*",
    ".circleci/**",
    ".buildkite/**",
    ".semaphore/**",
    ".teamcity/**",
    ".cirrus.*",
    ".travis.yml",
    ".build.yml",
    ".builds/**",
    ".azure-pipelines/**",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "appveyor.yml",
    ".appveyor.yml",
    "Jenkinsfile",
)
"""Guarded by default: the files that define what CI systems run."""

Problem = tuple[tuple[str, ...], str]
"""The path of a key, and what is wrong with its value."""


class UnmatchedPolicy(StrEnum):
    """What a changed path impacts when no glob matches it."""

    ALL = "ALL"
    IGNORE = "ignore"
    PATH = "path"


class PathTargets(Struct, frozen=True):
    globs: dict[str, tuple[str, ...]]
    """The globs of paths that impact each target."""
    unmatched: UnmatchedPolicy = UnmatchedPolicy.ALL


class RepositoryConfig(Struct, frozen=True):
    """The defaults are the configuration of a repository without the file."""

    required_statuses: tuple[str, ...] = ()
    checks: dict[str, str] = {}
    """The command of each check, for hosts on which Mergeyard runs the checks itself."""
    path_targets: PathTargets | None = None
    guarded_paths: tuple[str, ...] = (CONFIG_FILE, *CI_FILES)
    """Globs of paths. A fork's pull request that changes one of them must be submitted by a maintainer."""
    squash_template: str = ""
    """The message of squashed commits; empty: the file has none."""


async def read_config_file(mirror: Mirror, commit: Sha) -> bytes | TooLargeFile | None:
    return await mirror.read_file(commit, CONFIG_FILE, max_bytes=MAX_FILE_BYTES)


def parse_config(content: bytes | TooLargeFile | None) -> RepositoryConfig | InvalidConfig:
    """`content` is None when the repository has no such file."""
    if content is None:
        return RepositoryConfig()
    size = content.size if isinstance(content, TooLargeFile) else len(content)
    if isinstance(content, TooLargeFile) or size > MAX_FILE_BYTES:
        return InvalidConfig(f"{CONFIG_FILE}: {size} bytes are too many; {MAX_FILE_BYTES} are allowed")
    values = decode_toml(content)
    if isinstance(values, InvalidConfig):
        return InvalidConfig(f"{CONFIG_FILE}: {values.message}")
    problems = list(islice(find_problems(values), MAX_PROBLEMS + 1))
    if not problems:
        return to_config(values)
    messages = [f"{format_key(path)}: {message}" for path, message in problems[:MAX_PROBLEMS]]
    more = ["and more"] if len(problems) > MAX_PROBLEMS else []
    return InvalidConfig(f"{CONFIG_FILE}: {'; '.join([*messages, *more])}")


def find_problems(values: Table) -> Iterator[Problem]:
    for key in values:
        if key not in KEYS:
            close = difflib.get_close_matches(key[:MAX_NAME_CHARS], KEYS, n=1)
            advice = f" (did you mean {close[0]}?)" if close else f"; known are {', '.join(KEYS)}"
            yield (key,), f"unknown key{advice}"
    if "version" not in values:
        yield ("version",), "missing; write version = 1"
    for key, check in KEYS.items():
        if key in values:
            yield from (((key, *path), message) for path, message in check(values[key]))


def check_version(version: object) -> Iterator[Problem]:
    if type(version) is not int:
        yield (), "expected the number 1"
    elif version != 1:
        yield (), "expected 1, the only version there is"


def check_required_statuses(statuses: object) -> Iterator[Problem]:
    names = as_list_of_strings(statuses)
    if names is None:
        yield (), "expected a list of strings"
    elif not names:
        yield (), "expected at least one status; leave the key out to require all of [checks]"
    elif not all(map(is_name, names)):
        yield (), f"expected names of 1 to {MAX_NAME_CHARS} printable characters"


def check_commands(checks: object) -> Iterator[Problem]:
    if not isinstance(checks, dict):
        yield (), 'expected a table of commands, such as [checks] and unit = "make test" below it'
        return
    for name, command in cast(Table, checks).items():
        if not is_name(name):
            yield (name,), f"expected a name of 1 to {MAX_NAME_CHARS} printable characters"
        elif not isinstance(command, str):
            yield (name,), "expected a command as a string"
        elif not command.strip() or "\0" in command:
            yield (name,), "expected a command that a shell can run"


def check_targets(targets: object) -> Iterator[Problem]:
    if not isinstance(targets, dict):
        yield (), 'expected a table of globs, such as [targets] and app = ["app/**"] below it'
        return
    for name, value in cast(Table, targets).items():
        globs = as_list_of_strings(value)
        if name == UNMATCHED_KEY:
            if value not in tuple(UnmatchedPolicy):
                yield (name,), f"expected one of {', '.join(UnmatchedPolicy)}"
        elif not is_name(name):
            yield (name,), f"expected a name of 1 to {MAX_NAME_CHARS} printable characters"
        elif not globs:
            yield (name,), "expected a list of at least one glob"
        elif not all(map(is_glob, globs)):
            yield (name,), 'expected globs of paths from the root of the repository, such as "app/**/*.py"'


def check_guarded_paths(guarded: object) -> Iterator[Problem]:
    globs = as_list_of_strings(guarded)
    if globs is None:
        yield (), "expected a list of globs; [] guards only this file"
    elif len(globs) > MAX_GUARDED_PATHS:
        yield (), f"expected at most {MAX_GUARDED_PATHS} globs"
    elif not all(is_glob(glob) and len(glob) <= MAX_GLOB_CHARS for glob in globs):
        yield (), f'expected globs of at most {MAX_GLOB_CHARS} characters, from the root, such as "ci/**"'


def check_commit(commit: object) -> Iterator[Problem]:
    if not isinstance(commit, dict):
        yield (), 'expected a table, such as [commit] and squash = "{title}" below it'
        return
    for name, template in cast(Table, commit).items():
        if name != SQUASH_KEY:
            yield (name,), f"unknown key; known is {SQUASH_KEY}"
        elif not isinstance(template, str) or not template.strip():
            yield (name,), "expected a template as a string; leave the key out to use that of the queue"
        elif problem := find_template_problem(template):
            yield (name,), problem


KEYS: dict[str, Callable[[object], Iterator[Problem]]] = {
    "version": check_version,
    "required_statuses": check_required_statuses,
    "checks": check_commands,
    "targets": check_targets,
    "guarded_paths": check_guarded_paths,
    "commit": check_commit,
}
"""Each with the check of its value."""


def format_key(path: tuple[str, ...]) -> str:
    return ".".join(part if is_name(part) else ascii(part[:MAX_NAME_CHARS]) for part in path)


def to_config(values: Table) -> RepositoryConfig:
    """The guarded paths always include the file itself, because it defines what is guarded."""
    checks = convert(values.get("checks", {}), dict[str, str])
    required = convert(values.get("required_statuses", list(checks)), list[str])
    guarded = convert(values.get("guarded_paths", CI_FILES), list[str])
    path_targets = to_path_targets(convert(values["targets"], Table)) if "targets" in values else None
    guards = (CONFIG_FILE, *dict.fromkeys(guarded))
    template = convert(values.get("commit", {}), dict[str, str]).get(SQUASH_KEY, "")
    return RepositoryConfig(tuple(dict.fromkeys(required)), checks, path_targets, guards, template)


def to_path_targets(targets: Table) -> PathTargets:
    unmatched = convert(targets.get(UNMATCHED_KEY, UnmatchedPolicy.ALL), UnmatchedPolicy)
    globs = {name: value for name, value in targets.items() if name != UNMATCHED_KEY}
    return PathTargets(convert(globs, dict[str, tuple[str, ...]]), unmatched)


def parse_guarded_paths(content: bytes | TooLargeFile | None) -> tuple[str, ...]:
    """The globs of guarded paths. For a file that cannot be used these are the defaults."""
    config = parse_config(content)
    return (RepositoryConfig() if isinstance(config, InvalidConfig) else config).guarded_paths


def is_name(text: str) -> bool:
    return bool(text.strip()) and text.isprintable() and len(text) <= MAX_NAME_CHARS


def is_glob(text: str) -> bool:
    """Refuses syntax that other tools support and this one does not: anchors, negation, braces and escapes."""
    return bool(text.strip()) and not text.startswith(("/", "./", "../", "!")) and not set(text) & set("{}\\\0")


def as_list_of_strings(value: object) -> list[str] | None:
    try:
        return convert(value, list[str])
    except ValidationError:
        return None
