"""Parses `.mergeyard.toml`: required statuses, commands of checks, impacted targets of paths, guarded paths.

The authors of pull requests write this file, so its size and its keys are limited. A syntax error names its line, every
other error names its key.
"""

import difflib
import tomllib
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from typing import cast

from msgspec import Struct, ValidationError, convert

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Mirror, TooLargeFile

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_DOTS_PER_LINE = 200
"""tomllib takes n² steps and n² memory for a key of n parts. A key cannot continue on the next line."""
MAX_SYNTAX_ERROR_CHARS = 200

Table = dict[str, object]


class TomlProblem(Struct, frozen=True):
    """The content is not TOML, or exceeds a limit; the message tells its author where and what to do."""

    message: str


def decode_toml(content: bytes) -> Table | TomlProblem:
    if content.startswith(BYTE_ORDER_MARK):
        return TomlProblem("starts with a byte order mark; save it as UTF-8 without one")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        return TomlProblem(f"not UTF-8 (at line {number}); save it as UTF-8")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > MAX_DOTS_PER_LINE:
            return TomlProblem(f"more than {MAX_DOTS_PER_LINE} dots in one line (at line {number}); break the line")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return TomlProblem(f"not valid TOML: {shorten_error(str(error))}")
    except RecursionError:
        return TomlProblem("brackets are nested too deeply; remove the inner ones")
    except ValueError:
        return TomlProblem("a number has thousands of digits; shorten it")


def shorten_error(message: str) -> str:
    """Keeps the end, which names line and column; the middle can repeat a long key."""
    if len(message) <= MAX_SYNTAX_ERROR_CHARS:
        return message
    half = MAX_SYNTAX_ERROR_CHARS // 2
    return f"{message[:half]} ... {message[-half:]}"


CONFIG_FILE = ".mergeyard.toml"
KEYS = ("version", "required_statuses", "checks", "targets", "guarded_paths")
UNMATCHED_KEY = "unmatched"
"""The only key in `[targets]` that is not a target."""
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
    required_statuses: tuple[str, ...]
    checks: dict[str, str]
    """The command of each check, for hosts on which Mergeyard runs the checks itself."""
    path_targets: PathTargets | None = None
    guarded_paths: tuple[str, ...] = (CONFIG_FILE, *CI_FILES)
    """Globs of paths. A fork's pull request that changes one of them must be submitted by a maintainer."""


class InvalidConfig(Struct, frozen=True):
    """The file cannot be used; the message tells its author why."""

    message: str


def default_config() -> RepositoryConfig:
    """The configuration of a repository without the file."""
    return RepositoryConfig((), {})


async def read_config_file(mirror: Mirror, commit: Sha) -> bytes | TooLargeFile | None:
    return await mirror.read_file(commit, CONFIG_FILE, max_bytes=MAX_FILE_BYTES)


def parse_config(content: bytes | TooLargeFile | None) -> RepositoryConfig | InvalidConfig:
    """`content` is None when the repository has no such file."""
    if content is None:
        return default_config()
    size = content.size if isinstance(content, TooLargeFile) else len(content)
    if isinstance(content, TooLargeFile) or size > MAX_FILE_BYTES:
        return InvalidConfig(f"{CONFIG_FILE}: {size} bytes are too many; {MAX_FILE_BYTES} are allowed")
    values = decode_toml(content)
    if isinstance(values, TomlProblem):
        return InvalidConfig(f"{CONFIG_FILE}: {values.message}")
    problems = list(islice(find_problems(values), MAX_PROBLEMS + 1))
    return to_invalid_config(problems) if problems else to_config(values)


def find_problems(values: Table) -> Iterator[Problem]:
    yield from find_unknown_keys(values)
    yield from check_version(values)
    if "required_statuses" in values:
        yield from check_required_statuses(values["required_statuses"])
    if "checks" in values:
        yield from check_commands(values["checks"])
    if "targets" in values:
        yield from check_targets(values["targets"])
    if "guarded_paths" in values:
        yield from check_guarded_paths(values["guarded_paths"])


def find_unknown_keys(values: Table) -> Iterator[Problem]:
    for name in values:
        if name not in KEYS:
            close = difflib.get_close_matches(name[:MAX_NAME_CHARS], KEYS, n=1)
            yield (
                (name,),
                "unknown key" + (f" (did you mean {close[0]}?)" if close else f"; known are {', '.join(KEYS)}"),
            )


def check_version(values: Table) -> Iterator[Problem]:
    version = values.get("version")
    if "version" not in values:
        yield ("version",), "missing; write version = 1"
    elif type(version) is not int:
        yield ("version",), "expected the number 1"
    elif version != 1:
        yield ("version",), "expected 1, the only version there is"


def check_required_statuses(statuses: object) -> Iterator[Problem]:
    path = ("required_statuses",)
    names = as_list_of_strings(statuses)
    if names is None:
        yield path, "expected a list of strings"
    elif not names:
        yield path, "expected at least one status; leave the key out to require all of [checks]"
    elif not all(map(is_name, names)):
        yield path, f"expected names of 1 to {MAX_NAME_CHARS} printable characters"


def check_commands(checks: object) -> Iterator[Problem]:
    commands = as_table(checks)
    if commands is None:
        yield ("checks",), 'expected a table of commands, such as [checks] and unit = "make test" below it'
        return
    for name, command in commands.items():
        if not is_name(name):
            yield ("checks", name), f"expected a name of 1 to {MAX_NAME_CHARS} printable characters"
        elif not isinstance(command, str):
            yield ("checks", name), "expected a command as a string"
        elif not command.strip() or "\0" in command:
            yield ("checks", name), "expected a command that a shell can run"


def check_targets(targets: object) -> Iterator[Problem]:
    table = as_table(targets)
    if table is None:
        yield ("targets",), 'expected a table of globs, such as [targets] and app = ["app/**"] below it'
        return
    for name, value in table.items():
        if name == UNMATCHED_KEY:
            if value not in tuple(UnmatchedPolicy):
                yield ("targets", name), f"expected one of {', '.join(UnmatchedPolicy)}"
        elif not is_name(name):
            yield ("targets", name), f"expected a name of 1 to {MAX_NAME_CHARS} printable characters"
        elif not as_list_of_strings(value):
            yield ("targets", name), "expected a list of at least one glob"
        elif not all(map(is_glob, as_list_of_strings(value) or ())):
            yield ("targets", name), 'expected globs of paths from the root of the repository, such as "app/**/*.py"'


def check_guarded_paths(guarded: object) -> Iterator[Problem]:
    path, globs = ("guarded_paths",), as_list_of_strings(guarded)
    if globs is None:
        yield path, "expected a list of globs; [] guards only this file"
    elif len(globs) > MAX_GUARDED_PATHS:
        yield path, f"expected at most {MAX_GUARDED_PATHS} globs"
    elif not all(is_glob(glob) and len(glob) <= MAX_GLOB_CHARS for glob in globs):
        yield path, f'expected globs of at most {MAX_GLOB_CHARS} characters, from the root, such as "ci/**"'


def to_invalid_config(problems: list[Problem]) -> InvalidConfig:
    messages = [f"{format_key(path)}: {message}" for path, message in problems[:MAX_PROBLEMS]]
    more = ["and more"] if len(problems) > MAX_PROBLEMS else []
    return InvalidConfig(f"{CONFIG_FILE}: {'; '.join([*messages, *more])}")


def format_key(path: tuple[str, ...]) -> str:
    return ".".join(part if is_name(part) else ascii(part[:MAX_NAME_CHARS]) for part in path)


def to_config(values: Table) -> RepositoryConfig:
    checks = {name: str(command) for name, command in (as_table(values.get("checks")) or {}).items()}
    required = as_list_of_strings(values.get("required_statuses")) or list(checks)
    return RepositoryConfig(tuple(dict.fromkeys(required)), checks, to_path_targets(values), to_guarded_paths(values))


def to_guarded_paths(values: Table) -> tuple[str, ...]:
    """Always includes the file itself, because it defines what is guarded."""
    listed = as_list_of_strings(values.get("guarded_paths"))
    return (CONFIG_FILE, *dict.fromkeys(CI_FILES if listed is None else listed))


def parse_guarded_paths(content: bytes | TooLargeFile | None) -> tuple[str, ...]:
    """The globs of guarded paths. For a file that cannot be used these are the defaults."""
    config = parse_config(content)
    return default_config().guarded_paths if isinstance(config, InvalidConfig) else config.guarded_paths


def to_path_targets(values: Table) -> PathTargets | None:
    table = as_table(values.get("targets"))
    if table is None:
        return None
    globs = {name: tuple(as_list_of_strings(value) or ()) for name, value in table.items() if name != UNMATCHED_KEY}
    return PathTargets(globs, UnmatchedPolicy(str(table.get(UNMATCHED_KEY, UnmatchedPolicy.ALL))))


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


def as_table(value: object) -> Table | None:
    return cast(Table, value) if isinstance(value, dict) else None
