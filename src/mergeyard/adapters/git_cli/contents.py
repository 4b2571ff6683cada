"""Compares, reads and writes the files of commits."""

import asyncio
import re
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from mergeyard.adapters.git_cli.limits import Work
from mergeyard.adapters.git_cli.process import GitOptions, Repository
from mergeyard.adapters.git_cli.remote import to_display_path, validate_sha
from mergeyard.domain.ids import SHA_PATTERN, Sha
from mergeyard.ports.git import (
    Conflict,
    GitError,
    InvalidTreeError,
    LimitExceededError,
    OutputTooLargeError,
    TooLargeFile,
    TooManyPathsError,
)

DIFF_TREE = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--ignore-submodules=none")
DIFF_TREE_NAMES = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=none")
FILE_MODES = (b"100644", b"100755")
ABSENT_MODE = b"000000"
INVALID_PATH_MARKER = "invalid path"
NEW_TREES = ("rev-list", "--objects", "--filter=object:type=tree", "--filter-provided-objects", "--no-object-names")
IGNORED_DEFECTS = "zeroPaddedFilemode=ignore,badFilemode=ignore"
"""Written by old programs; git reads these modes."""
INDEX_PACK = ("index-pack", "--threads=1", f"--strict={IGNORED_DEFECTS}")
PROBLEM_PATTERN = re.compile(rf"^error: object (?:{SHA_PATTERN}): (\w+: .*)$", re.MULTILINE)
MAX_PROBLEM_CHARS = 200
MAX_MATCHES_BYTES = 1024 * 1024
"""Limit for the matching paths: callers show only the first few."""


class Difference(Struct, frozen=True):
    """The new mode and object at a changed path."""

    path: bytes
    mode: bytes
    content: bytes


async def diff_trees(repository: Repository, before: Sha, after: Sha) -> list[Difference]:
    commits = ("--end-of-options", validate_sha(before), validate_sha(after))
    out = await repository.run_checked(*DIFF_TREE, *commits, work=Work.CONTENTS)
    return list(parse_differences(out))


def parse_differences(out: bytes) -> Iterator[Difference]:
    fields = out.split(b"\0")
    for header, path in zip(fields[::2], fields[1::2], strict=False):
        _, mode, _, content, _ = header.split(b" ")
        yield Difference(path, mode, content)


async def find_changed_paths(repository: Repository, before: Sha, after: Sha) -> frozenset[bytes]:
    return frozenset(difference.path for difference in await diff_trees(repository, before, after))


async def find_changed_paths_matching(
    repository: Repository, before: Sha, after: Sha, globs: Collection[str]
) -> tuple[str, ...]:
    if not globs:  # without any pathspec git would list every path
        return ()
    commits = ("--end-of-options", validate_sha(before), validate_sha(after))
    result = await repository.run(
        *DIFF_TREE_NAMES,
        *commits,
        "--",
        *map(to_pathspec, globs),
        environment={"GIT_LITERAL_PATHSPECS": "0"},
        work=Work.CONTENTS,
        max_bytes=MAX_MATCHES_BYTES,
        allow_truncated=True,
    )
    if result.is_complete and result.exit_code != 0:
        raise await repository.to_error(result, [before, after])
    return tuple(to_display_path(path) for path in result.stdout.split(b"\0")[:-1])


def to_pathspec(glob: str) -> str:
    """Escapes brackets: they are wildcards in git's pathspecs, but not in our globs."""
    below = f"{glob}**" if glob.endswith("/") else glob
    return ":(top,glob)" + below.replace("[", r"\[")


async def replace_paths(repository: Repository, onto: Sha, source: Sha, paths: Collection[bytes]) -> Sha | Conflict:
    """A file that blocks one of the new files, and is not itself among the paths, is a conflict.

    So is a difference between the result and the source: git only warns `Ignoring path` about a name that it does not
    accept in an index.
    """
    wanted = frozenset(paths)
    found = await diff_trees(repository, onto, source)
    changes = [difference for difference in found if difference.path in wanted]
    blocking = find_obstacles(changes, [difference.path for difference in found if difference.path not in wanted])
    if blocking:
        return Conflict(tuple(map(to_display_path, blocking)))
    try:
        tree = await write_changed_tree(repository, onto, changes)
    except InvalidTreeError:
        return Conflict(())
    lost = {*changes} ^ {*await diff_trees(repository, onto, tree)}
    return Conflict(tuple(sorted({to_display_path(difference.path) for difference in lost}))) if lost else tree


async def write_changed_tree(repository: Repository, onto: Sha | None, changes: Collection[Difference]) -> Sha:
    """None: onto a tree without files."""
    with temporary_index(repository) as environment:
        if onto is not None:
            await run_with_index(repository, onto, environment, "read-tree", validate_sha(onto))
        if changes:
            await repository.run_checked(
                *("update-index", "-z", "--index-info"),
                stdin=encode_index_info(changes),
                environment=environment,
                work=Work.CONTENTS,
            )
        return await repository.read_sha("write-tree", environment=environment, work=Work.CONTENTS)


def find_obstacles(changes: Collection[Difference], others: Collection[bytes]) -> list[bytes]:
    """Other paths that are replaced by a directory, or whose directory is replaced by a file. git would remove them
    silently.

    Such a path cannot exist in the source, so it is always among the differences.
    """
    added = frozenset(change.path for change in changes if change.mode != ABSENT_MODE)
    folders = frozenset(folder for path in added for folder in parent_folders(path))
    return [path for path in others if path in folders or not added.isdisjoint(parent_folders(path))]


def parent_folders(path: bytes) -> list[bytes]:
    parts = path.split(b"/")
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts))]


def encode_index_info(changes: Collection[Difference]) -> bytes:
    """Deletions first: a file can become a directory."""
    deletions_first = sorted(changes, key=lambda change: change.mode != ABSENT_MODE)
    return b"".join(b"%b %b\t%b\0" % (change.mode, change.content, change.path) for change in deletions_first)


NOTES_MESSAGE = "Notes added by Mergeyard\n"
NOTE_PATTERN = re.compile(rb"(?:[0-9a-f]{2}/)*[0-9a-f]+")


async def write_notes(repository: Repository, tip: Sha | None, notes: Mapping[Sha, bytes]) -> Sha:
    """The tree with the notes of `tip` and these, and with nothing else: who can push the ref can put any files there,
    and the commit of this tree gets our signature."""
    contents = {} if tip is None else await list_notes(repository, tip)
    for commit, content in notes.items():
        blob = await repository.read_sha("hash-object", "-w", "--stdin", stdin=content)
        contents[validate_sha(commit).encode()] = blob.encode()
    changes = [Difference(locate_note(commit), FILE_MODES[0], blob) for commit, blob in contents.items()]
    return await write_changed_tree(repository, None, changes)


async def list_notes(repository: Repository, tip: Sha) -> dict[bytes, bytes]:
    """The notes by the name of their commit. git finds them in folders of two digits each, at any depth.

    None if the list is too long: some trees of another program have billions of files in a few objects. Their notes,
    like those of hundreds of thousands of merges, stay in the history of the ref.
    """
    try:
        listed = await repository.run_checked("ls-tree", "-r", "-z", "--full-tree", validate_sha(tip))
    except LimitExceededError:
        return {}
    notes = dict[bytes, bytes]()
    for entry in listed.split(b"\0")[:-1]:
        header, _, path = entry.partition(b"\t")
        mode, _, blob = header.split()
        if mode in FILE_MODES and NOTE_PATTERN.fullmatch(path):
            notes[path.replace(b"/", b"")] = blob
    return {commit: blob for commit, blob in notes.items() if len(commit) == len(tip)}


def locate_note(commit: bytes) -> bytes:
    return commit[:2] + b"/" + commit[2:]


async def read_file(repository: Repository, commit: Sha, path: str, max_bytes: int) -> bytes | TooLargeFile | None:
    if not path or "\0" in path:
        return None
    out = await repository.run_checked(
        "ls-tree", "-z", "-l", "--full-tree", "--end-of-options", validate_sha(commit), path
    )
    for entry in out.split(b"\0")[:-1]:
        header, _, name = entry.partition(b"\t")
        mode, _, content, size = header.split()
        if name == path.encode(errors="surrogateescape") and mode in FILE_MODES:
            if int(size) > max_bytes:
                return TooLargeFile(int(size))
            return await repository.run_checked("cat-file", "blob", content.decode())
    return None


async def has_same_file(repository: Repository, one: Sha, other: Sha, path: str) -> bool:
    names = "".join(f"{validate_sha(commit)}:{path}\n" for commit in (one, other))
    out = await repository.run_checked("cat-file", "--batch-check", stdin=names.encode())
    first, second = (
        line.rpartition(" ")[2] if line.endswith(" missing") else line for line in out.decode().splitlines()
    )
    return first == second


async def find_tree_problems(repository: Repository, head: Sha, without: Sha | None) -> tuple[str, ...]:
    """Packs only the new trees and checks the pack: `index-pack --strict` is the only check that takes a list of
    objects, whereas `fsck` follows every object to the beginning of the history."""
    lines = (validate_sha(head), *([f"^{validate_sha(without)}"] if without else []))
    trees = await repository.run_checked(*(*NEW_TREES, "--stdin"), stdin="\n".join(lines).encode(), work=Work.CONTENTS)
    if not trees:
        return ()
    if without is not None:  # a whole repository can have more paths than a pull request may add
        await check_path_count(repository, trees)
    with temporary_folder(repository) as folder:
        pack_objects = ("pack-objects", "--quiet", "--window=0", str(folder / "new"))
        name = await repository.run_checked(*pack_objects, stdin=trees, work=Work.CONTENTS)
        pack, index = folder / f"new-{name.decode().strip()}.pack", folder / "checked.idx"
        result = await repository.run(*INDEX_PACK, "-o", str(index), str(pack), work=Work.CONTENTS)
    found = PROBLEM_PATTERN.findall(result.stderr)
    if result.exit_code != 0 and not found:
        raise await repository.to_error(result, [head])
    return tuple(dict.fromkeys(problem[:MAX_PROBLEM_CHARS] for problem in found)) if result.exit_code != 0 else ()


MAX_PATHS = 2_000_000
"""Below the folders that one pull request changes. Git needs about 150 bytes for each path when it merges them."""
MAX_TREES_BYTES = 16 * 1024 * 1024


async def check_path_count(repository: Repository, new_trees: bytes) -> None:
    """Raises `TooManyPathsError` if the new trees contain each other so often that git would visit millions of paths.
    Eleven trees are enough for 10^10. `diff-tree` with a limited output would not end early: it writes nothing before
    it has found everything.

    It does not count trees that are too large to read here: then the limits of the merge have to do."""
    options = GitOptions(stdin=new_trees, work=Work.CONTENTS, max_bytes=MAX_TREES_BYTES)
    try:
        contents = await repository.run_checked("cat-file", "--batch", **options)
    except OutputTooLargeError:
        return
    if await asyncio.to_thread(count_paths, contents) > MAX_PATHS:
        raise TooManyPathsError(f"Its folders contain each other, with more than {MAX_PATHS:,} paths in all.")


SHA1_BYTES = 20
TREE_ENTRY_SHA1 = re.compile(rb"(\d{5,6}) [^\0]+\0(.{20})", re.DOTALL)
TREE_ENTRY_SHA256 = re.compile(rb"(\d{5,6}) [^\0]+\0(.{32})", re.DOTALL)
TREE_MODES = (b"40000", b"040000")


def list_tree_entries(content: bytes, name_bytes: int) -> list[tuple[bytes, bytes]]:
    """The mode and the name of each object in a tree, in the format in which names have so many bytes."""
    if name_bytes == SHA1_BYTES:
        return TREE_ENTRY_SHA1.findall(content)
    return TREE_ENTRY_SHA256.findall(content)


def count_paths(batch: bytes) -> int:
    """The most paths below one of the trees in the output of `git cat-file --batch`, or a number above `MAX_PATHS`. A
    tree that is not in the output counts as one path."""
    subtrees = dict[bytes, list[bytes]]()
    file_counts = dict[bytes, int]()
    start = 0
    while start < len(batch):
        end = batch.index(b"\n", start)
        name, _, size = batch[start:end].split()
        tree, content = bytes.fromhex(name.decode()), batch[end + 1 : end + 1 + int(size)]
        entries = list_tree_entries(content, len(tree))
        subtrees[tree] = [child for mode, child in entries if mode in TREE_MODES]
        file_counts[tree] = len(entries) - len(subtrees[tree])
        start = end + 1 + int(size) + 1
    return max(sum_paths(subtrees, file_counts).values(), default=0)


def sum_paths(subtrees: Mapping[bytes, Sequence[bytes]], file_counts: Mapping[bytes, int]) -> Mapping[bytes, int]:
    """The number of paths below each tree. Without recursion, because trees can be nested as deeply as someone likes;
    never in a circle, because the name of a tree depends on its content."""
    totals = dict[bytes, int]()
    unfinished = list(subtrees)
    while unfinished:
        tree = unfinished[-1]
        missing = {each for each in subtrees[tree] if each in subtrees and each not in totals}
        if missing and tree not in totals:
            unfinished += missing
            continue
        unfinished.pop()
        if tree not in totals:
            total = file_counts[tree] + sum(totals.get(each, 1) for each in subtrees[tree])
            totals[tree] = min(total, MAX_PATHS + 1)  # the true numbers can have thousands of digits
    return totals


async def export_tree(repository: Repository, commit: Sha, folder: str) -> None:
    """Byte for byte: the attributes of the mirror disable all conversions (see `mirrors`)."""
    with temporary_index(repository) as environment:
        Path(folder).mkdir(parents=True, exist_ok=True)
        variables = {**environment, "GIT_WORK_TREE": folder}
        for command in (("read-tree", validate_sha(commit)), ("checkout-index", "--all", "--quiet")):
            await run_with_index(repository, commit, variables, *command)


async def run_with_index(repository: Repository, commit: Sha, environment: Mapping[str, str], *command: str) -> None:
    """Raises `InvalidTreeError` if the commit contains a name that git does not accept in an index."""
    result = await repository.run(*command, environment=environment, work=Work.CONTENTS)
    if result.exit_code != 0 and INVALID_PATH_MARKER in result.stderr:
        raise InvalidTreeError(result.stderr)
    if result.exit_code != 0:
        raise await repository.to_error(result, [commit])


@contextmanager
def temporary_index(repository: Repository) -> Generator[Mapping[str, str]]:
    """An environment in which git uses a temporary index."""
    with temporary_folder(repository) as folder:
        yield {"GIT_INDEX_FILE": str(folder / "index")}


@contextmanager
def temporary_folder(repository: Repository) -> Generator[Path]:
    """If the server is killed, the folder is removed with the other stale files (see `mirrors`)."""
    try:
        with TemporaryDirectory(prefix="index-", dir=repository.path) as folder:
            yield Path(folder)
    except OSError as error:
        raise GitError(f"a temporary folder cannot be created in the mirror: {error}") from error
