"""Watches the refs of a plain repository: a look at an unchanged one costs a few `stat` calls and no git process.

git changes a loose ref by renaming a lock file in the folder of the ref, and the packed refs by renaming one in the
repository. So every change alters the time stamps of one of the folders that `scan_folders` returns. A look compares
those of branches, of packed refs and of the pull requests that a queue holds. Every half minute it compares all: also
those of other pull requests, of which there can be thousands, and those of the ref files, which some programs overwrite
in place.

Time stamps can hide a change: a folder that changes again within one tick of the file system's clock looks the same
afterwards. git has this problem with its index and calls it racy. Example with ticks of two seconds:

    12:00:00.1  main moves to A; the folder is stamped 12:00:00
    12:00:00.5  a look lists the refs: main is at A
    12:00:01.9  main moves to B; the folder is stamped 12:00:00 again

So a look trusts only stamps that were already older than a tick when the refs were listed. Until then every look lists
the refs again.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from mergeyard.adapters.host_plain.pull_requests import PULL_REFS_PREFIX, RefList, is_relevant_ref
from mergeyard.domain import ids
from mergeyard.domain.ids import PullRequestNumber, Sha

SECOND_NS = 10**9
MAX_TICK_NS = 3 * SECOND_NS
"""The coarsest time stamps of file systems in use have ticks of two seconds."""
FULL_LOOK_INTERVAL_NS = 30 * SECOND_NS

REF_FOLDERS = ("heads", "pull")
TEST_BRANCHES_FOLDER = ids.TEST_BRANCH_PREFIX.removesuffix("/")
OTHER_STORAGE_FILES = ("commondir", "reftable")
"""In a linked worktree and in a repository with reftables, the refs are elsewhere."""
STORAGE_SETTING = b"refstorage"
WATCHED_PREFIXES = ("refs/heads/", PULL_REFS_PREFIX)

Stamp = tuple[int, int, int, int]
"""Inode, modification time, change time and size."""
ReadStat = Callable[[str], os.stat_result]


class UnwatchableRefs(Exception):
    """The refs are not stored as plain files in the usual folders, so only git can tell whether they changed."""


class Folder(Struct, frozen=True):
    stamp: Stamp
    subfolders: tuple[str, ...]
    files: tuple[str, ...]


class Scan(Struct, frozen=True):
    """The stamps of all folders and files of relevant refs, read before the refs are listed."""

    at_ns: int
    folders: Mapping[str, Folder]
    frequent: tuple[tuple[str, Stamp], ...]
    """The folders that every look compares."""
    files: Mapping[str, Stamp]

    def is_racy(self) -> bool:
        has_racy_file = any(map(self._is_racy, self.files.values()))
        return has_racy_file or len(self.trusted_folders()) < len(self.folders)

    def trusted_folders(self) -> dict[str, Folder]:
        """Those that have the same contents while they have the same stamp."""
        return {path: folder for path, folder in self.folders.items() if not self._is_racy(folder.stamp)}

    def _is_racy(self, stamp: Stamp) -> bool:
        """Whether the change was so recent that another one can have the same stamp."""
        return max(stamp[1], stamp[2]) > self.at_ns - MAX_TICK_NS

    def has_same_stamps(self, other: "Scan | None") -> bool:
        return other is not None and (self.folders, self.files) == (other.folders, other.files)


def to_stamp(stat: os.stat_result) -> Stamp:
    return stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size


def scan(root: str, known: Mapping[str, Folder], now_ns: int, read_stat: ReadStat) -> Scan:
    folders = scan_folders(root, known, read_stat)
    files = {path: to_stamp(read_stat(path)) for folder in folders.values() for path in folder.files}
    return Scan(now_ns, folders, tuple(select_frequent(root, folders)), files)


def select_frequent(root: str, folders: Mapping[str, Folder]) -> Iterator[tuple[str, Stamp]]:
    """All except the folders of single pull requests, and `refs` itself once it contains both folders of relevant refs:
    every look finds out whether these two still exist."""
    for path, folder in folders.items():
        is_complete = path == f"{root}/refs" and len(folder.subfolders) == len(REF_FOLDERS)
        if not is_complete and not path.startswith(f"{root}/{PULL_REFS_PREFIX}"):
            yield path, folder.stamp


def scan_folders(root: str, known: Mapping[str, Folder], read_stat: ReadStat) -> dict[str, Folder]:
    """The repository itself, and the folders of loose refs. One with the same stamp as in `known` is not listed again.
    Each stamp is read before its folder is listed, so that the next look sees a change in between."""
    folders, unread = dict[str, Folder](), [root]
    while unread:
        path = unread.pop()
        stamp, before = to_stamp(read_stat(path)), known.get(path)
        if before is not None and before.stamp == stamp:
            folders[path] = before
        else:
            folders[path] = list_repository(root, stamp) if path == root else list_folder(root, path, stamp)
        unread += folders[path].subfolders
    return folders


def list_repository(root: str, stamp: Stamp) -> Folder:
    packed_refs = f"{root}/packed-refs"
    if any(os.path.lexists(f"{root}/{name}") for name in OTHER_STORAGE_FILES) or os.path.islink(packed_refs):
        raise UnwatchableRefs
    if STORAGE_SETTING in Path(root, "config").read_bytes().lower():
        raise UnwatchableRefs
    return Folder(stamp, (f"{root}/refs",), (packed_refs,) if os.path.exists(packed_refs) else ())


def list_folder(root: str, path: str, stamp: Stamp) -> Folder:
    with os.scandir(path) as entries:
        found = list(entries)
    if path == f"{root}/refs":
        found = [entry for entry in found if entry.name in REF_FOLDERS]
    elif path == f"{root}/refs/heads":
        found = [entry for entry in found if entry.name != TEST_BRANCHES_FOLDER or not entry.is_dir()]
    if any(entry.is_symlink() for entry in found):
        raise UnwatchableRefs
    subfolders = tuple(entry.path for entry in found if entry.is_dir())
    return Folder(stamp, subfolders, tuple(entry.path for entry in found if not entry.is_dir()))


class RefWatch:
    """The refs of one repository."""

    def __init__(self, folder: Path, now_ns: Callable[[], int] = time.time_ns, read_stat: ReadStat = os.stat) -> None:
        self._folder = folder
        self._root = str(folder)
        self._now_ns = now_ns
        self._read_stat = read_stat
        self._ref_list = RefList()
        self._trusted: Scan | None = None
        """Equal stamps mean equal refs."""
        self._known_folders: Mapping[str, Folder] = {}
        self._full_look_at_ns = 0

    def is_unchanged(self, numbers: Collection[PullRequestNumber]) -> bool:
        """Whether the branches and these pull requests are certainly the same as in the last listing. Other pull
        requests can have changed since the last full look. Blocks for some `stat` calls."""
        trusted, now_ns = self._trusted, self._now_ns()
        if trusted is None:
            return False
        if now_ns < self._full_look_at_ns + FULL_LOOK_INTERVAL_NS:
            return self._are_same(trusted.frequent) and self._are_same(self._select_folders(trusted, numbers))
        self._full_look_at_ns = now_ns
        folders = ((path, folder.stamp) for path, folder in trusted.folders.items())
        return self._are_same(folders) and self._are_same(trusted.files.items())

    def _select_folders(self, trusted: Scan, numbers: Collection[PullRequestNumber]) -> Iterator[tuple[str, Stamp]]:
        """A pull request without a folder has packed refs; a new folder changes the one that contains it."""
        for number in numbers:
            path = f"{self._root}/{PULL_REFS_PREFIX}{number}"
            if path in trusted.folders:
                yield path, trusted.folders[path].stamp

    def scan(self) -> Scan | None:
        """None if only git can tell whether the refs changed, also when there is no repository. Blocks for some `stat`
        calls."""
        try:
            return scan(self._root, self._known_folders, self._now_ns(), self._read_stat)
        except (UnwatchableRefs, OSError):
            return None

    async def read(self, scan: Scan | None) -> Mapping[str, Sha]:
        """Lists the refs unless the scan shows that they are the same; then returns the same object."""
        if scan is not None and scan.has_same_stamps(self._trusted):
            return self._ref_list.refs
        ref_list = await self._ref_list.refresh(self._folder)
        can_trust = scan is not None and not scan.is_racy() and all(map(is_watched, ref_list.symref_targets))
        self._ref_list, self._trusted = ref_list, scan if can_trust else None
        self._known_folders = {} if scan is None else scan.trusted_folders()
        return ref_list.refs

    def _are_same(self, stamps: Iterable[tuple[str, Stamp]]) -> bool:
        try:
            for path, stamp in stamps:
                if to_stamp(self._read_stat(path)) != stamp:
                    return False
        except OSError:
            return False
        return True


def is_watched(ref: str) -> bool:
    return ref.startswith(WATCHED_PREFIXES) and is_relevant_ref(ref)
