"""Real bare repositories on disk, written in short sentences and without any working tree.

    origin = Origin.made(tmp_path / "origin.git")
    origin.commit("main", {"a.txt": "1", "run.sh": Executable("exit 0"), "link": Symlink("a.txt")})
    origin.branch("feature", upon="main", files={"a.txt": None, "b.txt": "2"})
    assert origin.files("feature") == {"b.txt": "2", "run.sh": "exit 0", "link": "a.txt"}

A file is text, bytes or one of the structs below; None removes it. A place is a branch, a full ref or a commit.
"""

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Self

from msgspec import Struct

from mergeyard.domain.ids import Sha

ADA = "Ada <ada@example.org>"
SOME_DAY = 1_700_000_000
SHA = re.compile("[0-9a-f]{40}(?:[0-9a-f]{24})?")
FLEETING = "[core]\n\tfsync = none\n[receive]\n\tautogc = false\n"
"""Nobody pulls the plug, and after no push is there anything to tidy up."""
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
    def __init__(self, path: Path) -> None:
        self.path = path
        self._seconds = count(SOME_DAY)
        self._merged: dict[tuple[str, str], Sha] = {}

    @classmethod
    def made(cls, path: Path) -> Self:
        path.mkdir(parents=True)
        origin = cls(path)
        origin.run("init", "--quiet", "--bare", "--template=", "--initial-branch=main")
        with (path / "config").open("a") as config:
            config.write(FLEETING)
        return origin

    @property
    def url(self) -> str:
        return str(self.path)

    def commit(
        self, place: str, files: Files, *, message: str = "A change", author: str = ADA, merging: str | None = None
    ) -> Sha:
        """One more commit on a branch, which is made when it is not there; `merging` is its second parent."""
        return self._write(place, self.ref(place), changes(files), message=message, author=author, merging=merging)

    def branch(self, name: str, *, upon: str, files: Files | None = None, message: str = "A change") -> Sha:
        """A branch (or ref) that starts at another place, with one commit if there are files."""
        if files:
            return self._write(name, self.tip(upon), changes(files), message=message)
        self.set(name, self.tip(upon))
        return self.tip(upon)

    def rename(self, place: str, old: str, new: str, *, message: str = "A rename") -> Sha:
        return self._write(place, self.tip(place), [b"R %b %b\n" % (quoted(old), quoted(new))], message=message)

    def delete(self, place: str, *paths: str, message: str = "A removal") -> Sha:
        return self.commit(place, dict.fromkeys(paths), message=message)

    def chmod(self, place: str, path: str, mode: str = "100755", *, message: str = "A new mode") -> Sha:
        content = self.run("rev-parse", f"{self.tip(place)}:{path}").strip()
        changes = [b"M %b %b %b\n" % (mode.encode(), content, quoted(path))]
        return self._write(place, self.tip(place), changes, message=message)

    def _write(
        self,
        place: str,
        base: Sha | None,
        changes: Iterable[bytes],
        *,
        message: str,
        author: str = ADA,
        merging: str | None = None,
    ) -> Sha:
        when = f"{next(self._seconds)} +0100"
        lines = [f"commit {full(place)}", f"author {author} {when}", f"committer {ADA} {when}"]
        parents = [f"from {base}"] if base else []
        parents += [f"merge {self.tip(merging)}"] if merging else []
        stream = [*(f"{line}\n".encode() for line in lines), data(message.encode())]
        stream += [*(f"{line}\n".encode() for line in parents), *changes]
        self.run("fast-import", "--quiet", "--force", stdin=b"".join(stream))
        return self.tip(place)

    def ref(self, place: str) -> Sha | None:
        """Where a branch or ref is, if it is there; a commit is where it is."""
        if SHA.fullmatch(place):
            return Sha(place)
        return self._loose_ref(place) or self._packed_ref(place)

    def _loose_ref(self, place: str) -> Sha | None:
        """One that has a file of its own. Both kinds are read without git: a process takes many times as long."""
        try:
            held = (self.path / full(place)).read_text().strip()
        except OSError:
            return None
        return Sha(held) if SHA.fullmatch(held) else None

    def _packed_ref(self, place: str) -> Sha | None:
        packed = self.path / "packed-refs"
        lines = packed.read_text(errors="surrogateescape").split("\n") if packed.exists() else []
        held = {ref: sha for sha, _, ref in (line.partition(" ") for line in lines)}
        return Sha(held[full(place)]) if full(place) in held else None

    def tip(self, place: str) -> Sha:
        found = self.ref(place)
        assert found, f"there is no {place}"
        return found

    def refs(self) -> dict[str, Sha]:
        listed = self.run("for-each-ref", "--format=%(refname) %(objectname)").decode(errors="surrogateescape")
        lines = listed.split("\n")[:-1]
        return {ref: Sha(sha) for ref, sha in (line.split(" ") for line in lines)}

    def set(self, place: str, sha: str) -> None:
        self.run("update-ref", full(place), sha)

    def remove(self, place: str) -> None:
        self.run("update-ref", "-d", full(place))

    def blob(self, content: str | bytes) -> Sha:
        return Sha(self.run("hash-object", "-w", "--stdin", stdin=as_bytes(content)).decode().strip())

    def graft(self, place: str, name: str, entry: str, *, message: str = "An odd name") -> Sha:
        """One more commit on a branch, with an entry such as `120000 blob <sha>` under a name that git may refuse."""
        there = self.run("ls-tree", "-z", self.tip(place))
        tree = self.run("mktree", "-z", stdin=there + f"{entry}\t{name}\0".encode()).decode().strip()
        commit = self.run("commit-tree", "-p", self.tip(place), "-m", message, tree).decode().strip()
        self.set(place, commit)
        return Sha(commit)

    def files(self, place: str) -> dict[str, str]:
        """All files and links with their contents; bytes that are no text are surrogates."""
        return {
            path: as_text(self.run("cat-file", "blob", content))
            for path, (mode, content) in self._entries(place).items()
            if mode != "160000"
        }

    def modes(self, place: str) -> dict[str, str]:
        return {path: mode for path, (mode, _) in self._entries(place).items()}

    def _entries(self, place: str) -> dict[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        for entry in self.run("ls-tree", "-r", "-z", self.tip(place)).split(b"\0")[:-1]:
            facts, _, path = entry.partition(b"\t")
            mode, _, content = facts.decode().split(" ")
            found[as_text(path)] = (mode, content)
        return found

    def tree(self, place: str) -> Sha:
        return Sha(self.run("rev-parse", f"{self.tip(place)}^{{tree}}").decode().strip())

    def merged_tree(self, onto: str, head: str) -> Sha | None:
        """None: they conflict. What two commits make together is asked of git once."""
        if (onto, head) not in self._merged:
            try:
                merged = self.run("merge-tree", "--write-tree", onto, head)
            except subprocess.CalledProcessError:
                return None
            self._merged[onto, head] = Sha(merged.decode().split()[0])
        return self._merged[onto, head]

    def subjects(self, place: str) -> list[str]:
        """The first lines of all messages, along first parents, oldest first."""
        return self.log(place, "%s")

    def log(self, place: str, form: str) -> list[str]:
        """One entry per commit along first parents, oldest first, in one of git's pretty formats."""
        out = self.run("log", "-z", "--first-parent", "--reverse", f"--format={form}", self.tip(place))
        return out.decode(errors="replace").split("\0")[:-1]

    def hook(self, name: str, script: str) -> None:
        path = self.path / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Any other git command, in this repository."""
        command = ["git", "--git-dir", str(self.path), *arguments]
        return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, check=True, env=ENVIRONMENT).stdout


def full(place: str) -> str:
    return place if place.startswith("refs/") else f"refs/heads/{place}"


def changes(files: Files) -> Iterable[bytes]:
    gone_first = sorted(files.items(), key=lambda item: item[1] is not None)
    return (change(path, content) for path, content in gone_first)


def change(path: str, content: Content) -> bytes:
    """One change, in the language of `git fast-import`."""
    match content:
        case None:
            return b"D %b\n" % quoted(path)
        case Submodule(commit):
            return b"M 160000 %b %b\n" % (commit.encode(), quoted(path))
        case Executable(text):
            return b"M 100755 inline %b\n" % quoted(path) + data(as_bytes(text))
        case Symlink(target):
            return b"M 120000 inline %b\n" % quoted(path) + data(as_bytes(target))
        case str() | bytes():
            return b"M 100644 inline %b\n" % quoted(path) + data(as_bytes(content))


def data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)


def quoted(path: str) -> bytes:
    escaped = as_bytes(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"%b"' % escaped


def as_bytes(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode(errors="surrogateescape")


def as_text(content: bytes) -> str:
    return content.decode(errors="surrogateescape")
