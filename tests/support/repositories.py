"""Real bare repositories on disk, written without a working tree.

    origin = Origin.create(tmp_path / "origin.git")
    origin.commit("main", {"a.txt": "1", "run.sh": Executable("exit 0"), "link": Symlink("a.txt")})
    origin.branch("feature", base="main", files={"a.txt": None, "b.txt": "2"})
    assert origin.files("feature") == {"b.txt": "2", "run.sh": "exit 0", "link": "a.txt"}

A file is text, bytes or one of the structs below; None removes it. A revision is a branch, a full ref or a commit.
"""

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Self

from msgspec import Struct

from mergeyard.domain.ids import SHA1, SHA256, SHA_PATTERN, ObjectFormat, Sha

ADA = "Ada <ada@example.org>"
FIRST_COMMIT_TIME = 1_700_000_000
SHA = re.compile(SHA_PATTERN)
BARE_CONFIG = """\
[core]
	repositoryformatversion = {version}
	bare = true
	fsync = none
[receive]
	autogc = false
[merge]
	directoryRenames = false
"""
"""Faster: a power failure is not tested, and garbage collection after a push is not needed. Merges follow renames of
files, and not of folders, like those of the queue."""
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


class Executable(Struct, frozen=True):
    content: str


class Symlink(Struct, frozen=True):
    target: str


class Submodule(Struct, frozen=True):
    commit: str


Content = str | bytes | Executable | Symlink | Submodule | None
Files = Mapping[str, Content]


class Origin:
    def __init__(self, path: Path, object_format: ObjectFormat = SHA1) -> None:
        self.path = path
        self.object_format = object_format
        self._seconds = count(FIRST_COMMIT_TIME)
        self._merged: dict[tuple[str, str], Sha] = {}

    @classmethod
    def create(cls, path: Path, object_format: ObjectFormat = SHA1) -> Self:
        """Writes what `git init --bare` would: a process takes many times as long."""
        for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
            (path / folder).mkdir(parents=True)
        (path / "HEAD").write_text("ref: refs/heads/main\n")
        (path / "config").write_text(BARE_CONFIG.format(version=0))
        if object_format != SHA1:
            extension = f"[extensions]\n\tobjectFormat = {object_format.name}\n"
            (path / "config").write_text(BARE_CONFIG.format(version=1) + extension)
        return cls(path, object_format)

    @property
    def url(self) -> str:
        return str(self.path)

    def commit(
        self,
        place: str,
        files: Files,
        *,
        message: str = "A change",
        author: str = ADA,
        committer: str = ADA,
        merging: str | None = None,
    ) -> Sha:
        """Adds a commit to a branch, which is created if missing; `merging` is its second parent."""
        changes = encode_changes(files)
        base = self.ref(place)
        return self._write(place, base, changes, message=message, author=author, committer=committer, merging=merging)

    def branch(self, name: str, *, base: str, files: Files | None = None, message: str = "A change") -> Sha:
        """Creates a branch (or ref) at another revision, with one commit if there are files."""
        if files:
            return self._write(name, self.tip(base), encode_changes(files), message=message)
        self.set_ref(name, self.tip(base))
        return self.tip(base)

    def rename(self, place: str, old: str, new: str, *, message: str = "A rename") -> Sha:
        return self._write(place, self.tip(place), [b"R %b %b\n" % (quote_path(old), quote_path(new))], message=message)

    def delete(self, place: str, *paths: str, message: str = "A removal") -> Sha:
        return self.commit(place, dict.fromkeys(paths), message=message)

    def chmod(self, place: str, path: str, mode: str = "100755", *, message: str = "A new mode") -> Sha:
        content = self.run("rev-parse", f"{self.tip(place)}:{path}").strip()
        changes = [b"M %b %b %b\n" % (mode.encode(), content, quote_path(path))]
        return self._write(place, self.tip(place), changes, message=message)

    def _write(
        self,
        place: str,
        base: Sha | None,
        changes: Iterable[bytes],
        *,
        message: str,
        author: str = ADA,
        committer: str = ADA,
        merging: str | None = None,
    ) -> Sha:
        when = f"{next(self._seconds)} +0100"
        lines = [f"commit {full_ref(place)}", f"author {author} {when}", f"committer {committer} {when}"]
        parents = [f"from {base}"] if base else []
        parents += [f"merge {self.tip(merging)}"] if merging else []
        stream = [*(f"{line}\n".encode() for line in lines), encode_data(message.encode())]
        stream += [*(f"{line}\n".encode() for line in parents), *changes]
        self.run("fast-import", "--quiet", "--force", stdin=b"".join(stream))
        return self.tip(place)

    def unknown_sha(self, number: int) -> Sha:
        """The name of an object that does not exist."""
        digits = 64 if self.object_format == SHA256 else 40
        return Sha(f"{number:0{digits}x}")

    @property
    def null_sha(self) -> Sha:
        """Stands for no object: only zeros."""
        return self.unknown_sha(0)

    def ref(self, place: str) -> Sha | None:
        """The commit of a branch or ref, if it exists; a commit is returned as it is."""
        if SHA.fullmatch(place):
            return Sha(place)
        return self._loose_ref(place) or self._packed_refs().get(full_ref(place))

    def _loose_ref(self, place: str) -> Sha | None:
        """A ref with its own file. Both kinds are read without git: a process takes many times as long."""
        try:
            content = (self.path / full_ref(place)).read_text().strip()
        except OSError:
            return None
        return Sha(content) if SHA.fullmatch(content) else None

    def _packed_refs(self) -> dict[str, Sha]:
        packed = self.path / "packed-refs"
        lines = packed.read_text(errors="surrogateescape").split("\n") if packed.exists() else []
        return {ref: Sha(sha) for sha, _, ref in (line.partition(" ") for line in lines) if SHA.fullmatch(sha)}

    def tip(self, place: str) -> Sha:
        found = self.ref(place)
        assert found, f"{place} does not exist"
        return found

    def refs(self) -> dict[str, Sha]:
        """All refs in the order of their names."""
        names = (str(file.relative_to(self.path)) for file in (self.path / "refs").rglob("*") if not file.is_dir())
        loose = {name: sha for name in names if (sha := self._loose_ref(name))}
        return dict(sorted((self._packed_refs() | loose).items()))

    def set_ref(self, place: str, sha: str) -> None:
        self.run("update-ref", full_ref(place), sha)

    def delete_ref(self, place: str) -> None:
        self.run("update-ref", "-d", full_ref(place))

    def blob(self, content: str | bytes) -> Sha:
        return Sha(self.run("hash-object", "-w", "--stdin", stdin=to_bytes(content)).decode().strip())

    def commit_raw_entry(self, place: str, name: str, entry: str, *, message: str = "An odd name") -> Sha:
        """Adds a commit with an entry such as `120000 blob <sha>` under a name that git may refuse."""
        entries = self.run("ls-tree", "-z", self.tip(place))
        tree = self.run("mktree", "-z", stdin=entries + f"{entry}\t{name}\0".encode()).decode().strip()
        commit = self.run("commit-tree", "-p", self.tip(place), "-m", message, tree).decode().strip()
        self.set_ref(place, commit)
        return Sha(commit)

    def files(self, place: str) -> dict[str, str]:
        """All files and links with their contents; bytes that are not text become surrogates."""
        return {
            path: to_text(self.run("cat-file", "blob", content))
            for path, (mode, content) in self._entries(place).items()
            if mode != "160000"
        }

    def modes(self, place: str) -> dict[str, str]:
        return {path: mode for path, (mode, _) in self._entries(place).items()}

    def _entries(self, place: str) -> dict[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        for entry in self.run("ls-tree", "-r", "-z", self.tip(place)).split(b"\0")[:-1]:
            metadata, _, path = entry.partition(b"\t")
            mode, _, content = metadata.decode().split(" ")
            found[to_text(path)] = (mode, content)
        return found

    def git_bomb(self, place: str, *, levels: int, removing: str | None = None) -> Sha:
        """Adds a commit with the folder `vendor`, whose few trees describe 10 ** levels files, and perhaps without a
        file of the root folder."""
        entries = b"".join(b"100644 blob %b\tf%d\n" % (self.blob("x").encode(), each) for each in range(10))
        for _ in range(levels - 1):
            tree = self.run("mktree", stdin=entries).strip()
            entries = b"".join(b"040000 tree %b\td%d\n" % (tree, each) for each in range(10))
        vendor = self.run("mktree", stdin=entries).strip()
        listed = self.run("ls-tree", self.tip(place)).splitlines(keepends=True)
        others = [line for line in listed if removing is None or not line.endswith(f"\t{removing}\n".encode())]
        root = self.run("mktree", stdin=b"".join((*others, b"040000 tree %b\tvendor\n" % vendor))).decode().strip()
        commit = self.run("commit-tree", "-p", self.tip(place), "-m", "Tidy up", root).decode().strip()
        self.set_ref(place, commit)
        return Sha(commit)

    def delta_bomb(self, place: str, *, size: int) -> Sha:
        """Adds a commit with two files of this size, stored as one and a difference from it: a few hundred bytes for
        each mebibyte, which git can only unpack as a whole."""
        files = [self.blob(b"\0" * size + end) for end in (b"1", b"2")]
        self.run("pack-objects", "--quiet", str(self.path / "objects/pack/pack"), stdin="\n".join(files).encode())
        self.run("prune-packed", "--quiet")
        entries = self.run("ls-tree", self.tip(place))
        entries += b"".join(b"100644 blob %b\tlarge%d\n" % (each.encode(), at) for at, each in enumerate(files))
        root = self.run("mktree", stdin=entries).decode().strip()
        commit = self.run("commit-tree", "-p", self.tip(place), "-m", "Add large files", root).decode().strip()
        self.set_ref(place, commit)
        return Sha(commit)

    def tree(self, place: str) -> Sha:
        return Sha(self.run("rev-parse", f"{self.tip(place)}^{{tree}}").decode().strip())

    def merged_tree(self, onto: str, head: str) -> Sha | None:
        """None if they conflict. Results are cached."""
        if (onto, head) not in self._merged:
            try:
                merged = self.run("merge-tree", "--write-tree", onto, head)
            except subprocess.CalledProcessError:
                return None
            self._merged[onto, head] = Sha(merged.decode().split()[0])
        return self._merged[onto, head]

    def subjects(self, place: str) -> list[str]:
        """The subjects of all commits along first parents, oldest first."""
        return self.log(place, "%s")

    def log(self, place: str, pretty: str) -> list[str]:
        """One entry per commit along first parents, oldest first, in a pretty format of git."""
        out = self.run("log", "-z", "--first-parent", "--reverse", f"--format={pretty}", self.tip(place))
        return out.decode(errors="replace").split("\0")[:-1]

    def install_hook(self, name: str, script: str) -> None:
        path = self.path / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Runs any git command in this repository."""
        command = ["git", "--git-dir", str(self.path), *arguments]
        return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, check=True, env=ENVIRONMENT).stdout


def full_ref(place: str) -> str:
    return place if place.startswith("refs/") else f"refs/heads/{place}"


def encode_changes(files: Files) -> Iterable[bytes]:
    removals_first = sorted(files.items(), key=lambda item: item[1] is not None)
    return (encode_change(path, content) for path, content in removals_first)


def encode_change(path: str, content: Content) -> bytes:
    """One change as a command of `git fast-import`."""
    match content:
        case None:
            return b"D %b\n" % quote_path(path)
        case Submodule(commit):
            return b"M 160000 %b %b\n" % (commit.encode(), quote_path(path))
        case Executable(text):
            return b"M 100755 inline %b\n" % quote_path(path) + encode_data(to_bytes(text))
        case Symlink(target):
            return b"M 120000 inline %b\n" % quote_path(path) + encode_data(to_bytes(target))
        case str() | bytes():
            return b"M 100644 inline %b\n" % quote_path(path) + encode_data(to_bytes(content))


def encode_data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)


def quote_path(path: str) -> bytes:
    escaped = to_bytes(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"%b"' % escaped


def to_bytes(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode(errors="surrogateescape")


def to_text(content: bytes) -> str:
    return content.decode(errors="surrogateescape")
