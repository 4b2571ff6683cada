"""Finds the mirrors below one folder, and makes those that are not there.

Commits that a mirror has once seen stay in it, whether or not a ref leads to them: it is tidied, and never cleaned.
"""

import asyncio
import os
import shutil
from asyncio import Lock
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp
from time import monotonic

import structlog

from mergeyard.adapters.git_cli import tidying
from mergeyard.adapters.git_cli.commits import Committer
from mergeyard.adapters.git_cli.healing import Healer
from mergeyard.adapters.git_cli.leftovers import clear_away
from mergeyard.adapters.git_cli.mirror import ROUNDS_OF_TIDYING, CliMirror
from mergeyard.adapters.git_cli.process import Processes
from mergeyard.adapters.git_cli.repository import Repository
from mergeyard.adapters.git_cli.version import ADVICE, complaint
from mergeyard.ports.git import GitTrouble, Remote

log = structlog.get_logger()

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
SECONDS_TO_CHECK = 5.0
SECONDS_WELL = 1.0
ROOM = 64 * 1024
"""Bytes without which nothing can be fetched."""


class GitCli:
    def __init__(self, folder: str | Path, committer: Committer) -> None:
        self._folder = Path(folder).absolute()
        self._committer = committer
        self._processes = Processes()
        self._checking = Processes()
        """Apart, so that nobody who checks waits for those who work, nor the other way round."""
        self._well_until = 0.0
        self._healer = Healer()
        self._opening: defaultdict[Path, Lock] = defaultdict(Lock)
        self._fetching: defaultdict[Path, Lock] = defaultdict(Lock)
        self._mirrors: dict[str, CliMirror] = {}

    def at_hand(self) -> Collection[str]:
        mirrors = (path.relative_to(self._folder) for path in mirrors_below(self._folder))
        return {path.as_posix().removesuffix(".git") for path in mirrors}

    async def check(self) -> None:
        """What was well a moment ago is not asked again: everybody may ask."""
        if monotonic() < self._well_until:
            return
        try:
            answer = await self._checking.run("version", seconds=SECONDS_TO_CHECK)
        except GitTrouble as trouble:
            raise GitTrouble(f"{trouble}; {ADVICE}") from trouble
        wrong = complaint(answer.out.decode(errors="replace").strip()) or await asyncio.to_thread(self._lack_of_room)
        if wrong:
            raise GitTrouble(wrong)
        self._well_until = monotonic() + SECONDS_WELL

    def _lack_of_room(self) -> str | None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with TemporaryFile(dir=self._folder) as probe:
                probe.write(bytes(ROOM))
        except OSError as error:
            return f"{self._folder} cannot be written to ({error.strerror}): make room there, or check who owns it"
        return None

    async def mirror(self, name: str, remote: Remote) -> CliMirror:
        known = self._mirrors.get(name)
        if known is not None and known.remote == remote and known.repository.sound:
            return known
        path = place(self._folder, name)
        async with self._opening[path]:
            known = self._mirrors.get(name)
            if known is None or not known.repository.sound:
                await self._open(path, known)
            elif known.remote == remote:
                return known
            repository = Repository(path, self._processes)
            mirror = self._mirrors[name] = CliMirror(repository, remote, self._committer, self._fetching[path])
        return mirror

    async def tidy(self) -> None:
        for mirror in [each for each in self._mirrors.values() if each.untidy]:
            mirror.untidy -= 1
            try:
                await tidying.tidy(mirror.repository)
            except GitTrouble as trouble:
                mirror.untidy = ROUNDS_OF_TIDYING
                log.warning("a mirror cannot be tidied", mirror=mirror.repository.path.name, words=str(trouble))

    async def _open(self, path: Path, known: CliMirror | None) -> None:
        try:
            if known is not None:
                await self._healer.heal(known.repository)
            elif path.exists():
                await asyncio.to_thread(clear_away, path)
            if not path.exists():
                await self._make(path)
        except OSError as error:
            raise GitTrouble(f"the mirror {path} cannot be opened: {error}") from error

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
