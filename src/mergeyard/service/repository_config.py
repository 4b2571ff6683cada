"""Understands `.mergeyard.toml`, in which a repository says what must pass, how to check it, and what paths impact."""

import difflib
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from typing import cast

from msgspec import Struct, ValidationError, convert

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Mirror, TooLargeFile
from mergeyard.service import toml_document
from mergeyard.service.toml_document import KeyPath, Unreadable

FILE = ".mergeyard.toml"
KEYS = ("version", "required_statuses", "checks", "targets", "guarded_paths")
UNMATCHED = "unmatched"
"""The one word in `[targets]` that is no target."""
LARGEST_FILE = 64 * 1024
MOST_COMPLAINTS = 3
LONGEST_NAME = 255
MAX_GUARDED_PATHS = 100
MAX_GLOB_LENGTH = 255
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
"""What a repository guards that does not say otherwise: the files from which CI systems take what they run."""

Table = dict[str, object]
Complaint = tuple[KeyPath, str]


class Unmatched(StrEnum):
    """What a changed path impacts that no glob covers."""

    ALL = "ALL"
    IGNORE = "ignore"
    PATH = "path"


class PathTargets(Struct, frozen=True):
    globs: dict[str, tuple[str, ...]]
    """Which paths impact a target."""
    unmatched: Unmatched = Unmatched.ALL


class RepositoryConfig(Struct, frozen=True):
    required_statuses: tuple[str, ...]
    checks: dict[str, str]
    """What to run for each status, where the service runs the checks itself."""
    targets: PathTargets | None = None
    guarded_paths: tuple[str, ...] = (FILE, *CI_FILES)
    """Globs of paths that a fork may change only with a maintainer's submission."""


class Broken(Struct, frozen=True):
    """The file cannot be used, and the words tell its author why."""

    words: str


def absent() -> RepositoryConfig:
    """What a repository without the file says."""
    return RepositoryConfig((), {})


async def read_file(mirror: Mirror, commit: Sha) -> bytes | TooLargeFile | None:
    return await mirror.file(commit, FILE, max_bytes=LARGEST_FILE)


def parse(content: bytes | TooLargeFile | None) -> RepositoryConfig | Broken:
    """What the file says; None: it is not there."""
    if content is None:
        return absent()
    size = content.size if isinstance(content, TooLargeFile) else len(content)
    if isinstance(content, TooLargeFile) or size > LARGEST_FILE:
        return Broken(f"{FILE}: {size} bytes are too many; {LARGEST_FILE} are allowed")
    document = toml_document.read(content)
    if isinstance(document, Unreadable):
        return Broken(f"{FILE} line {document.line}: {document.words}")
    complaints = list(islice(complaints_about(document.values), MOST_COMPLAINTS + 1))
    if complaints:
        return broken(complaints, toml_document.lines_of_keys(document))
    return config_of(document.values)


def complaints_about(values: Table) -> Iterator[Complaint]:
    yield from complaints_about_names(values)
    yield from complaints_about_version(values)
    if "required_statuses" in values:
        yield from complaints_about_statuses(values["required_statuses"])
    if "checks" in values:
        yield from complaints_about_checks(values["checks"])
    if "targets" in values:
        yield from complaints_about_targets(values["targets"])
    if "guarded_paths" in values:
        yield from complaints_about_guarded_paths(values["guarded_paths"])


def complaints_about_names(values: Table) -> Iterator[Complaint]:
    for name in values:
        if name not in KEYS:
            close = difflib.get_close_matches(name[:LONGEST_NAME], KEYS, n=1)
            yield (
                (name,),
                "unknown key" + (f" (did you mean {close[0]}?)" if close else f"; known are {', '.join(KEYS)}"),
            )


def complaints_about_version(values: Table) -> Iterator[Complaint]:
    version = values.get("version")
    if "version" not in values:
        yield ("version",), "missing; write version = 1"
    elif type(version) is not int:
        yield ("version",), "expected the number 1"
    elif version != 1:
        yield ("version",), "expected 1, the only version there is"


def complaints_about_statuses(statuses: object) -> Iterator[Complaint]:
    path = ("required_statuses",)
    names = list_of_strings(statuses)
    if names is None:
        yield path, "expected a list of strings"
    elif not names:
        yield path, "expected at least one status; leave the key out to require all of [checks]"
    elif not all(map(is_name, names)):
        yield path, f"expected names of 1 to {LONGEST_NAME} printable characters"


def complaints_about_checks(checks: object) -> Iterator[Complaint]:
    commands = table_of(checks)
    if commands is None:
        yield ("checks",), 'expected a table of commands, such as [checks] and unit = "make test" below it'
        return
    for name, command in commands.items():
        if not is_name(name):
            yield ("checks", name), f"expected a name of 1 to {LONGEST_NAME} printable characters"
        elif not isinstance(command, str):
            yield ("checks", name), "expected a command as a string"
        elif not command.strip() or "\0" in command:
            yield ("checks", name), "expected a command that a shell can run"


def complaints_about_targets(targets: object) -> Iterator[Complaint]:
    table = table_of(targets)
    if table is None:
        yield ("targets",), 'expected a table of globs, such as [targets] and app = ["app/**"] below it'
        return
    for name, value in table.items():
        if name == UNMATCHED:
            if value not in tuple(Unmatched):
                yield ("targets", name), f"expected one of {', '.join(Unmatched)}"
        elif not is_name(name):
            yield ("targets", name), f"expected a name of 1 to {LONGEST_NAME} printable characters"
        elif not list_of_strings(value):
            yield ("targets", name), "expected a list of at least one glob"
        elif not all(map(is_glob, list_of_strings(value) or ())):
            yield ("targets", name), 'expected globs of paths from the root of the repository, such as "app/**/*.py"'


def complaints_about_guarded_paths(guarded: object) -> Iterator[Complaint]:
    path, globs = ("guarded_paths",), list_of_strings(guarded)
    if globs is None:
        yield path, "expected a list of globs; [] guards only this file"
    elif len(globs) > MAX_GUARDED_PATHS:
        yield path, f"expected at most {MAX_GUARDED_PATHS} globs"
    elif not all(is_glob(glob) and len(glob) <= MAX_GLOB_LENGTH for glob in globs):
        yield path, f'expected globs of at most {MAX_GLOB_LENGTH} characters, from the root, such as "ci/**"'


def broken(complaints: list[Complaint], lines: dict[KeyPath, int]) -> Broken:
    shown = [sentence(path, words, lines) for path, words in complaints[:MOST_COMPLAINTS]]
    return Broken("; ".join(shown) + ("; and more" if len(complaints) > MOST_COMPLAINTS else ""))


def sentence(path: KeyPath, words: str, lines: dict[KeyPath, int]) -> str:
    key = ".".join(part if is_name(part) else ascii(part[:LONGEST_NAME]) for part in path)
    return f"{FILE} line {lines.get(path, 1)}, {key}: {words}"


def config_of(values: Table) -> RepositoryConfig:
    checks = {name: str(command) for name, command in (table_of(values.get("checks")) or {}).items()}
    required = list_of_strings(values.get("required_statuses")) or list(checks)
    return RepositoryConfig(tuple(dict.fromkeys(required)), checks, targets_of(values), guarded_paths_of(values))


def guarded_paths_of(values: Table) -> tuple[str, ...]:
    """The file itself is always among them: it says what is guarded."""
    listed = list_of_strings(values.get("guarded_paths"))
    return (FILE, *dict.fromkeys(CI_FILES if listed is None else listed))


def guarded_paths(content: bytes | TooLargeFile | None) -> tuple[str, ...]:
    """The globs that the file guards; a file that cannot be used guards what an absent one does."""
    config = parse(content)
    return absent().guarded_paths if isinstance(config, Broken) else config.guarded_paths


def targets_of(values: Table) -> PathTargets | None:
    table = table_of(values.get("targets"))
    if table is None:
        return None
    globs = {name: tuple(list_of_strings(value) or ()) for name, value in table.items() if name != UNMATCHED}
    return PathTargets(globs, Unmatched(str(table.get(UNMATCHED, Unmatched.ALL))))


def is_name(text: str) -> bool:
    return bool(text.strip()) and text.isprintable() and len(text) <= LONGEST_NAME


def is_glob(text: str) -> bool:
    """Whoever writes these characters means something that would not happen here."""
    return bool(text.strip()) and not text.startswith(("/", "./", "../", "!")) and not set(text) & set("{}\\\0")


def list_of_strings(value: object) -> list[str] | None:
    try:
        return convert(value, list[str])
    except ValidationError:
        return None


def table_of(value: object) -> Table | None:
    return cast(Table, value) if isinstance(value, dict) else None
