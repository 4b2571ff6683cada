"""Finds the mirrors below one folder, and makes those that are not there.

Commits that a mirror has once seen stay in it, whether or not a ref leads to them: it is never cleaned.
"""

import os
import shutil
import time
from asyncio import Lock
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from tempfile import mkdtemp

from mergeyard.adapters.git_cli.commits import Committer
from mergeyard.adapters.git_cli.mirror import CliMirror
from mergeyard.adapters.git_cli.process import GRACE, SECONDS_OVER_THE_NETWORK, Processes
from mergeyard.adapters.git_cli.repository import Repository
from mergeyard.adapters.git_cli.version import ADVICE, complaint
from mergeyard.ports.git import GitTrouble, Remote

CONFIG = f"""\
[core]
	hooksPath = {os.devnull}
	attributesFile = {os.devnull}
[gc]
	auto = 0
	pruneExpire = never
[maintenance]
	auto = false
"""
ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding -export-ignore -export-subst\n"
"""Stronger than any `.gitattributes` in a commit: files are exported byte for byte."""


class GitCli:
    def __init__(self, folder: str | Path, committer: Committer) -> None:
        self._folder = Path(folder).absolute()
        self._committer = committer
        self._processes = Processes()
        self._fetching: defaultdict[Path, Lock] = defaultdict(Lock)
        self._mirrors: dict[str, CliMirror] = {}

    def at_hand(self) -> Collection[str]:
        mirrors = (path.relative_to(self._folder) for path in mirrors_below(self._folder))
        return {path.as_posix().removesuffix(".git") for path in mirrors}

    async def check(self) -> None:
        try:
            answer = await self._processes.run("version")
        except GitTrouble as trouble:
            raise GitTrouble(f"{trouble}; {ADVICE}") from trouble
        wrong = complaint(answer.out.decode(errors="replace").strip())
        if wrong:
            raise GitTrouble(wrong)

    async def mirror(self, name: str, remote: Remote) -> CliMirror:
        known = self._mirrors.get(name)
        if known is not None and known.remote == remote:
            return known
        path = place(self._folder, name)
        if known is None:
            await self._open(path)
        repository = Repository(path, self._processes)
        mirror = self._mirrors[name] = CliMirror(repository, remote, self._committer, self._fetching[path])
        return mirror

    async def _open(self, path: Path) -> None:
        if path.exists():
            remove_stale_locks(path)
        else:
            await self._make(path)

    async def _make(self, path: Path) -> None:
        """Aside, and then put in its place as a whole: there are no half mirrors."""
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(mkdtemp(prefix=".new-", dir=path.parent))
        try:
            await self._init(aside)
            aside.rename(path)
        except OSError as error:
            if not path.exists():
                raise GitTrouble(f"no mirror could be made: {error}") from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    async def _init(self, path: Path) -> None:
        answer = await self._processes.run("init", "--quiet", "--bare", "--template=", "--end-of-options", str(path))
        if answer.code != 0:
            raise GitTrouble(answer.words)
        with (path / "config").open("a") as config:
            config.write(CONFIG)
        (path / "info").mkdir(exist_ok=True)
        (path / "info" / "attributes").write_text(ATTRIBUTES)


def mirrors_below(folder: Path) -> Iterator[Path]:
    """However deep they lie: the groups of an owner are folders within folders. In a mirror there is no other."""
    for above, folders, _ in os.walk(folder):
        found = {name for name in folders if name.endswith(".git") and Path(above, name, "HEAD").is_file()}
        yield from (Path(above, name) for name in found)
        folders[:] = [name for name in folders if name not in found and not name.startswith(".")]


def place(folder: Path, name: str) -> Path:
    """`host/owner/name` lies at `host/owner/name.git`, and never outside the folder."""
    parts = name.split("/")
    if "\0" in name or "\\" in name or any(part.startswith(".") or not part for part in parts):
        raise GitTrouble(f"{name!r} is no name for a mirror")
    return folder.joinpath(*parts[:-1], f"{parts[-1]}.git")


def remove_stale_locks(path: Path) -> None:
    """A machine that lost power leaves locks behind; those of running processes are younger than any may live."""
    oldest = time.time() - SECONDS_OVER_THE_NETWORK - 2 * GRACE
    for lock in (path / "refs").rglob("*.lock"):
        if lock.stat().st_mtime < oldest:
            lock.unlink(missing_ok=True)
