"""Finds, creates, repairs and maintains the mirrors below one folder.

Commits that a mirror has fetched stay in it, whether or not a ref contains them: it is repacked, but never
garbage-collected.
"""

import asyncio
import os
import shutil
import time
from asyncio import Lock
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp
from time import monotonic
from uuid import uuid4

import structlog

from mergeyard.adapters.git_cli import process
from mergeyard.adapters.git_cli.limits import NETWORK_TIMEOUT_S, Limits, Work
from mergeyard.adapters.git_cli.mirror import CliMirror
from mergeyard.domain.ids import SHA1, ObjectFormat
from mergeyard.ports.git import GitError, Identity, Remote

PACK_REFS = ("pack-refs", "--all")
MAINTENANCE_TASKS = ("loose-objects", "incremental-repack", "commit-graph")
PACK_OBJECTS = ("maintenance", "run", "--auto", "--quiet", *(f"--task={task}" for task in MAINTENANCE_TASKS))
"""`--auto`: only tasks for which enough work has accumulated."""


async def run_maintenance(repository: process.Repository) -> None:
    for command in (PACK_REFS, PACK_OBJECTS):
        await repository.run_checked(*command, work=Work.TRANSFER)


STALE_FILE_GLOBS = (
    *("*.lock", "refs/**/*.lock", "objects/*.lock", "objects/info/*.lock", "objects/pack/*.lock"),
    *("gc.pid", "packed-refs.new", "index-*"),
    *("objects/pack/tmp_*", "objects/pack/.tmp-*", "objects/??/tmp_obj_*", "objects/tmp_obj*"),
    *("objects/info/commit-graphs/*.lock", "objects/info/commit-graphs/tmp_graph_*"),
)
DISCARDED_PREFIX = ".broken-"
"""Name prefix of discarded mirrors. One is left if the server was killed before it was removed."""
MAX_PROCESS_AGE_S = NETWORK_TIMEOUT_S + 2 * process.TERMINATION_GRACE_S
PROC_FOLDER = Path("/proc")
"""Only on Linux. On other systems a file is stale only when it is older than any git process can be."""


def remove_stale_files(mirror: Path) -> None:
    """The files are listed before the processes: a file that existed when no git was running belongs to none, even if
    one starts afterwards."""
    found = list(find_stale_files(mirror))
    stale = found if found and not is_git_running_in(mirror) else list(filter(is_too_old, found))
    for path in (*stale, *mirror.parent.glob(f"{DISCARDED_PREFIX}*")):
        remove_path(path)


def remove_path(path: Path) -> None:
    with suppress(OSError):
        path.unlink() if path.is_file() else shutil.rmtree(path)


def find_stale_files(mirror: Path) -> Iterator[Path]:
    for pattern in STALE_FILE_GLOBS:
        yield from mirror.glob(pattern)


def is_too_old(path: Path) -> bool:
    try:
        return path.stat().st_mtime < time.time() - MAX_PROCESS_AGE_S
    except OSError:
        return False


def is_git_running_in(mirror: Path) -> bool:
    """git gets its repository as an argument, and passes it to its child processes in the environment."""
    if not PROC_FOLDER.is_dir():
        return True
    markers = (b"--git-dir=" + os.fsencode(mirror), b"GIT_DIR=" + os.fsencode(mirror))
    return any(
        marker in values
        for pid in os.listdir(PROC_FOLDER)
        if pid.isdecimal()
        for values in read_process_values(pid)
        for marker in markers
    )


def read_process_values(pid: str) -> Iterator[list[bytes]]:
    """The arguments and the environment of a process."""
    for name in ("cmdline", "environ"):
        with suppress(OSError):
            yield (PROC_FOLDER / pid / name).read_bytes().split(b"\0")


log = structlog.get_logger()

FSCK = ("fsck", "--full", "--no-dangling", "--no-progress", "--no-reflogs")
MIN_FSCK_INTERVAL_S = 60.0
"""Per mirror: fsck reads all of it, and fetching it repeatedly onto a failing disk is expensive as well."""
MAX_FINDING_CHARS = 300


class MirrorRepair:
    def __init__(self) -> None:
        self._checked_at: dict[Path, float] = {}

    async def repair(self, repository: process.Repository) -> None:
        """Afterwards the mirror is usable, as far as fsck can detect, or removed."""
        complaint = repository.damage_message
        if not repository.has_head:
            log.warning("mirror_missing", mirror=str(repository.path))
            await discard(repository.path)
            return
        await asyncio.to_thread(remove_stale_files, repository.path)
        if process.is_damage_message(complaint) and self._can_check(repository.path):
            finding = await run_fsck(repository)
            if finding:
                log.warning("mirror_damaged", mirror=str(repository.path), error=finding)
                await discard(repository.path)

    def _can_check(self, path: Path) -> bool:
        last = self._checked_at.get(path)
        if last is not None and monotonic() - last < MIN_FSCK_INTERVAL_S:
            return False
        self._checked_at[path] = monotonic()
        return True


async def run_fsck(repository: process.Repository) -> str:
    """The damage that git finds; empty if there is none, or if fsck could not run."""
    try:
        result = await repository.run(*FSCK, work=Work.TRANSFER, allow_truncated=True)
    except GitError:
        return ""
    output = f"{result.stdout.decode(errors='replace')}\n{result.stderr}".strip()
    return output[:MAX_FINDING_CHARS] if process.is_damage_message(output) else ""


async def discard(path: Path) -> None:
    """Renames it first, which is atomic and needs no disk space: no process sees a partly deleted mirror."""
    if path.exists():
        discarded = path.rename(path.with_name(f"{DISCARDED_PREFIX}{uuid4().hex}"))
        await asyncio.to_thread(remove_path, discarded)


MIRROR_CONFIG = f"""\
[core]
	hooksPath = {os.devnull}
	attributesFile = {os.devnull}
[gc]
	auto = 0
	pruneExpire = never
[maintenance]
	auto = false
"""
MIRROR_ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding -export-ignore -export-subst\n"
"""Takes precedence over any `.gitattributes` in a commit, so that files are exported byte for byte."""
CHECK_TIMEOUT_S = 5.0
CHECK_CACHE_S = 1.0
MIN_FREE_BYTES = 64 * 1024
"""Without this much space nothing can be fetched."""


class GitCli:
    def __init__(self, folder: str | Path, identity: Identity, limits: Limits | None = None) -> None:
        """The identity is for mirrors that are opened without one."""
        self._folder = Path(folder).absolute()
        self._identity = identity
        self._runner = process.GitRunner(limits)
        self._check_runner = process.GitRunner(limits)
        """Separate, so that health checks and work do not wait for each other's slots."""
        self._healthy_until = 0.0
        self._repair = MirrorRepair()
        self._opening: defaultdict[Path, Lock] = defaultdict(Lock)
        self._fetching: defaultdict[Path, Lock] = defaultdict(Lock)
        self._mirrors: dict[str, CliMirror] = {}

    def mirror_names(self) -> Collection[str]:
        return {to_mirror_name(self._folder, path) for path in find_mirrors(self._folder)}

    async def check(self) -> None:
        """Success is cached for `CHECK_CACHE_S`, because the health endpoint is public."""
        if monotonic() < self._healthy_until:
            return
        try:
            result = await self._check_runner.run("version", timeout_s=CHECK_TIMEOUT_S)
        except GitError as error:
            raise GitError(f"{error}; {process.UPGRADE_ADVICE}") from error
        version = result.stdout.decode(errors="replace").strip()
        problem = process.find_version_problem(version) or await asyncio.to_thread(self._find_disk_problem)
        if problem:
            raise GitError(problem)
        self._healthy_until = monotonic() + CHECK_CACHE_S

    def _find_disk_problem(self) -> str | None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with TemporaryFile(dir=self._folder) as probe:
                probe.write(bytes(MIN_FREE_BYTES))
        except OSError as error:
            return (
                f"{self._folder} cannot be written to ({error.strerror}): free disk space there, or check who owns it"
            )
        return None

    async def mirror(self, name: str, remote: Remote, identity: Identity | None = None) -> CliMirror:
        mirror, identity = await self._get_mirror(name, remote), identity or self._identity
        return mirror if mirror.identity == identity else mirror.with_identity(identity)

    async def _get_mirror(self, name: str, remote: Remote) -> CliMirror:
        known = self._mirrors.get(name)
        if known is not None and known.remote == remote and known.repository.is_healthy:
            return known
        path = mirror_path(self._folder, name)
        async with self._opening[path]:
            known = self._mirrors.get(name)
            if known is None or not known.repository.is_healthy:
                await self._open(path, known)
            elif known.remote == remote:
                return known
            repository = process.Repository(path, self._runner)
            mirror = self._mirrors[name] = CliMirror(
                repository, remote, self._identity, self._fetching[path], self._replace
            )
        return mirror

    async def run_maintenance(self) -> None:
        repositories = [mirror.repository for mirror in self._mirrors.values()]
        for repository in [each for each in repositories if each.maintenance_rounds_left]:
            repository.maintenance_rounds_left -= 1
            try:
                await run_maintenance(repository)
            except GitError as error:
                repository.maintenance_rounds_left = process.MAINTENANCE_ROUNDS
                log.warning("mirror_maintenance_failed", mirror=repository.path.name, error=str(error))

    async def _open(self, path: Path, known: CliMirror | None) -> None:
        try:
            if known is not None:
                await self._repair.repair(known.repository)
            elif path.exists():
                await asyncio.to_thread(remove_stale_files, path)
            if not path.exists():
                await self._create(path)
        except OSError as error:
            raise GitError(f"the mirror {path} cannot be opened: {error}") from error

    async def _replace(self, repository: process.Repository, object_format: ObjectFormat) -> None:
        """A mirror is created before its remote was read, and a user can create the remote again in another format.
        Nothing in the old mirror is of use then: no commit in it can be pushed."""
        log.info("mirror_replaced", mirror=str(repository.path), object_format=object_format.name)
        async with self._opening[repository.path]:
            await discard(repository.path)
            await self._create(repository.path, object_format)
            repository.forget_state()

    async def _create(self, path: Path, object_format: ObjectFormat = SHA1) -> None:
        """Creates it under a temporary name and renames it, so that a partial mirror is never visible."""
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(mkdtemp(prefix=".new-", dir=path.parent))
        try:
            await self._init(draft, object_format)
            draft.rename(path)
        except OSError as error:
            if not path.exists():
                raise GitError(f"the mirror could not be created: {error}") from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    async def _init(self, path: Path, object_format: ObjectFormat) -> None:
        """The format is named in any case: Git 3.0 has another default than its predecessors."""
        options = ("--quiet", "--bare", "--template=", f"--object-format={object_format.name}")
        result = await self._runner.run("init", *options, "--end-of-options", str(path))
        if result.exit_code != 0:
            raise GitError(result.stderr)
        with (path / "config").open("a") as config:
            config.write(MIRROR_CONFIG)
        (path / "info").mkdir(exist_ok=True)
        (path / "info" / "attributes").write_text(MIRROR_ATTRIBUTES)


def find_mirrors(folder: Path) -> Iterator[Path]:
    """At any depth, because the groups of an owner are nested folders. Does not search inside mirrors."""
    for parent, folders, _ in os.walk(folder):
        found = {name for name in folders if name.endswith(".git") and Path(parent, name, "HEAD").is_file()}
        yield from (Path(parent, name) for name in found)
        folders[:] = [name for name in folders if name not in found and not name.startswith(".")]


ESCAPES = {".": "%2E", "%": "%25"}
"""The escape character itself is escaped as well, so that no two names have the same path."""
UNESCAPED = {escaped: character for character, escaped in ESCAPES.items()}


def mirror_path(folder: Path, name: str) -> Path:
    """The mirror `host/owner/name` is at `host/owner/name.git`, never outside the folder.

    A dot at the beginning of a part is escaped: such files are our temporary ones.
    """
    parts = name.split("/")
    if "\0" in name or "\\" in name or any(part in ("", ".", "..") for part in parts):
        raise GitError(f"{name!r} is not a valid name for a mirror")
    *owner, last = (ESCAPES.get(part[0], part[0]) + part[1:] for part in parts)
    return folder.joinpath(*owner, f"{last}.git")


def to_mirror_name(folder: Path, path: Path) -> str:
    """The reverse of `mirror_path`."""
    parts = path.relative_to(folder).as_posix().removesuffix(".git").split("/")
    return "/".join(UNESCAPED.get(part[:3], part[:3]) + part[3:] for part in parts)
