"""Works on the contents of commits, path by path: what differs, what a file holds, what is put where."""

import re
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from mergeyard.adapters.git_cli.names import checked_sha, readable
from mergeyard.adapters.git_cli.process import SECONDS_OVER_THE_NETWORK
from mergeyard.adapters.git_cli.repository import Repository
from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Conflict, GitTrouble, InvalidTreeError, TooLargeFile

DIFFERENCES = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--ignore-submodules=none")
NAMES = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=none")
FILES = (b"100644", b"100755")
ABSENT = b"000000"
NO_NAME_FOR_AN_INDEX = "invalid path"
NEW_TREES = ("rev-list", "--objects", "--filter=object:type=tree", "--filter-provided-objects", "--no-object-names")
HARMLESS_DEFECTS = "zeroPaddedFilemode=ignore,badFilemode=ignore"
"""Old programs wrote such modes; git reads them."""
CHECK = ("index-pack", f"--strict={HARMLESS_DEFECTS}")
PROBLEM = re.compile(r"^error: object [0-9a-f]{40}: (\w+: .*)$", re.MULTILINE)
MAX_PROBLEM_CHARS = 200
MAX_MATCHES_BYTES = 1024 * 1024
"""Of changed paths that match: callers show the first few."""


class Difference(Struct, frozen=True):
    """What is at a path afterwards."""

    path: bytes
    mode: bytes
    content: bytes


async def differences(repository: Repository, before: Sha, after: Sha) -> list[Difference]:
    out = await repository.ask(*DIFFERENCES, "--end-of-options", checked_sha(before), checked_sha(after))
    return list(parsed(out))


def parsed(out: bytes) -> Iterator[Difference]:
    fields = out.split(b"\0")
    for facts, path in zip(fields[::2], fields[1::2], strict=False):
        _, mode, _, content, _ = facts.split(b" ")
        yield Difference(path, mode, content)


async def changed_paths(repository: Repository, before: Sha, after: Sha) -> frozenset[bytes]:
    return frozenset(difference.path for difference in await differences(repository, before, after))


async def changed_paths_matching(
    repository: Repository, before: Sha, after: Sha, globs: Collection[str]
) -> tuple[str, ...]:
    if not globs:  # without any pathspec git would list every path
        return ()
    question = (*NAMES, "--end-of-options", checked_sha(before), checked_sha(after), "--", *map(pathspec, globs))
    answer = await repository.call(
        *question, environment={"GIT_LITERAL_PATHSPECS": "0"}, max_bytes=MAX_MATCHES_BYTES, may_be_cut=True
    )
    if answer.complete and answer.code != 0:
        raise await repository.trouble(answer, [before, after])
    return tuple(readable(path) for path in answer.out.split(b"\0")[:-1])


def pathspec(glob: str) -> str:
    """In git's language brackets are wildcards; here they stand for themselves."""
    below = f"{glob}**" if glob.endswith("/") else glob
    return ":(top,glob)" + below.replace("[", r"\[")


async def transplant(repository: Repository, onto: Sha, source: Sha, paths: Collection[bytes]) -> Sha | Conflict:
    """A file that stands in the way of what comes, and is not itself among the paths, is a conflict.

    So is all that does not arrive as it is: of a name that git puts into no index it says no more than `Ignoring path`.
    """
    wanted = frozenset(paths)
    found = await differences(repository, onto, source)
    changes = [difference for difference in found if difference.path in wanted]
    in_the_way = obstacles(changes, [difference.path for difference in found if difference.path not in wanted])
    if in_the_way:
        return Conflict(tuple(map(readable, in_the_way)))
    tree = await put_together(repository, onto, changes)
    if tree is None:
        return Conflict(())
    lost = {*changes} ^ {*await differences(repository, onto, tree)}
    return Conflict(tuple(sorted({readable(difference.path) for difference in lost}))) if lost else tree


async def put_together(repository: Repository, onto: Sha, changes: Collection[Difference]) -> Sha | None:
    """None when there is a name already that git puts into no index."""
    with passing_index(repository) as environment:
        answer = await repository.call("read-tree", checked_sha(onto), environment=environment)
        if answer.code != 0 and NO_NAME_FOR_AN_INDEX in answer.words:
            return None
        if answer.code != 0:
            raise await repository.trouble(answer, [onto])
        if changes:
            await repository.ask("update-index", "-z", "--index-info", stdin=entries(changes), environment=environment)
        out = await repository.ask("write-tree", environment=environment)
    return Sha(out.decode().strip())


def obstacles(changes: Collection[Difference], others: Collection[bytes]) -> list[bytes]:
    """Other paths at which a directory, or below which a file is to come. Git would remove them without a word.

    Whatever is in the way of contents of the source is not in the source: so it is among the differences.
    """
    coming = frozenset(change.path for change in changes if change.mode != ABSENT)
    folders = frozenset(folder for path in coming for folder in folders_of(path))
    return [path for path in others if path in folders or not coming.isdisjoint(folders_of(path))]


def folders_of(path: bytes) -> list[bytes]:
    parts = path.split(b"/")
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts))]


def entries(changes: Collection[Difference]) -> bytes:
    """What goes makes way for what comes: a file may become a directory."""
    going_first = sorted(changes, key=lambda change: change.mode != ABSENT)
    return b"".join(b"%b %b\t%b\0" % (change.mode, change.content, change.path) for change in going_first)


async def file(repository: Repository, commit: Sha, path: str, max_bytes: int) -> bytes | TooLargeFile | None:
    if not path or "\0" in path:
        return None
    out = await repository.ask("ls-tree", "-z", "-l", "--full-tree", "--end-of-options", checked_sha(commit), path)
    for entry in out.split(b"\0")[:-1]:
        facts, _, name = entry.partition(b"\t")
        mode, _, content, size = facts.split()
        if name == path.encode(errors="surrogateescape") and mode in FILES:
            if int(size) > max_bytes:
                return TooLargeFile(int(size))
            return await repository.ask("cat-file", "blob", content.decode())
    return None


async def has_same_file(repository: Repository, one: Sha, other: Sha, path: str) -> bool:
    names = "".join(f"{checked_sha(commit)}:{path}\n" for commit in (one, other))
    out = await repository.ask("cat-file", "--batch-check", stdin=names.encode())
    first, second = (
        line.rpartition(" ")[2] if line.endswith(" missing") else line for line in out.decode().splitlines()
    )
    return first == second


async def tree_problems(repository: Repository, head: Sha, without: Sha | None) -> tuple[str, ...]:
    """The new trees alone are packed, for `index-pack --strict` is the one check that takes a list of objects: `fsck`
    follows every object to the beginning of history."""
    lines = (checked_sha(head), *([f"^{checked_sha(without)}"] if without else []))
    trees = await repository.ask(*NEW_TREES, "--stdin", stdin="\n".join(lines).encode())
    if not trees:
        return ()
    with passing_folder(repository) as folder:
        name = await repository.ask("pack-objects", "--quiet", "--window=0", str(folder / "new"), stdin=trees)
        pack, index = folder / f"new-{name.decode().strip()}.pack", folder / "checked.idx"
        answer = await repository.call(*CHECK, "-o", str(index), str(pack), seconds=SECONDS_OVER_THE_NETWORK)
    found = PROBLEM.findall(answer.words)
    if answer.code != 0 and not found:
        raise await repository.trouble(answer, [head])
    return tuple(dict.fromkeys(problem[:MAX_PROBLEM_CHARS] for problem in found)) if answer.code != 0 else ()


async def export(repository: Repository, commit: Sha, folder: str) -> None:
    """Byte for byte: the mirror's own attributes forbid every conversion (see `opening`)."""
    with passing_index(repository) as environment:
        Path(folder).mkdir(parents=True, exist_ok=True)
        surroundings = {**environment, "GIT_WORK_TREE": folder}
        for command in (("read-tree", checked_sha(commit)), ("checkout-index", "--all", "--quiet")):
            answer = await repository.call(*command, environment=surroundings)
            if answer.code != 0 and NO_NAME_FOR_AN_INDEX in answer.words:
                raise InvalidTreeError(answer.words)
            if answer.code != 0:
                raise await repository.trouble(answer, [commit])


@contextmanager
def passing_index(repository: Repository) -> Generator[Mapping[str, str]]:
    """The environment in which git uses an index of its own, for as long as the work takes."""
    with passing_folder(repository) as folder:
        yield {"GIT_INDEX_FILE": str(folder / "index")}


@contextmanager
def passing_folder(repository: Repository) -> Generator[Path]:
    """One that a killed server left in the mirror is cleared away with the rest (see `leftovers`)."""
    try:
        with TemporaryDirectory(prefix="index-", dir=repository.path) as folder:
            yield Path(folder)
    except OSError as error:
        raise GitTrouble(f"there is no place for an index: {error}") from error
