"""Bare repositories for the benchmark, each written at once: a tree of files, branches, and open pull requests."""

import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct, json

from mergeyard.domain.ids import Sha

COMMITTER = b"Ada <ada@example.org> 1700000000 +0000"
FILES_PER_FOLDER = 40
ENVIRONMENT = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}


class BenchRepository(Struct, frozen=True):
    """The same parameters always give the same commits."""

    path: Path
    files: int
    branches: Sequence[str]
    pull_requests: int
    """Pull request n changes its own file; its base is branch n modulo the number of branches."""

    def write(self) -> None:
        self.path.mkdir(parents=True)
        self.git("init", "--quiet", "--bare", "--template=", f"--initial-branch={self.branches[0]}")
        metas = self.git("fast-import", "--quiet", stdin=b"".join(self._stream())).splitlines()
        refs = (b"create refs/pull/%d/meta %b\n" % numbered for numbered in enumerate(metas, start=1))
        self.git("update-ref", "--stdin", stdin=b"".join(refs))

    def base(self, number: int) -> str:
        return self.branches[number % len(self.branches)]

    def tip(self, ref: str) -> Sha:
        return Sha(self.git("rev-parse", "--verify", ref).decode().strip())

    def git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        command = ["git", f"--git-dir={self.path}", *arguments]
        return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, check=True, env=ENVIRONMENT).stdout

    def _stream(self) -> Iterator[bytes]:
        yield _blob(1, b"as it was\n")
        yield _commit(f"refs/heads/{self.branches[0]}", 2, "Begin", ((_path(index), 1) for index in range(self.files)))
        for branch in self.branches[1:]:
            yield b"reset refs/heads/%b\nfrom :2\n\n" % branch.encode()
        for number in range(1, self.pull_requests + 1):
            yield from self._pull_request(number)

    def _pull_request(self, number: int) -> Iterator[bytes]:
        """Prints the id of the blob with its metadata: fast-import can give a ref only to commits."""
        change, head, meta = (3 * number + kind for kind in range(3))
        title = f"Change number {number}"
        yield _blob(change, b"changed by %d\n" % number)
        yield b"reset refs/pull/%d/head\nfrom :2\n\n" % number
        yield _commit(f"refs/pull/{number}/head", head, title, [(_path(number % self.files), change)])
        metadata = {"title": title, "author": "Ada", "base": self.base(number), "branch": f"topic-{number}"}
        yield _blob(meta, json.encode(metadata)) + b"get-mark :%d\n" % meta


def _path(index: int) -> str:
    folder = index // FILES_PER_FOLDER
    return f"area{folder // 20}/folder{folder}/file{index}.txt"


def _commit(ref: str, mark: int, message: str, files: Iterable[tuple[str, int]]) -> bytes:
    head = b"commit %b\nmark :%d\ncommitter %b\n%b" % (ref.encode(), mark, COMMITTER, _data(message.encode()))
    return head + b"".join(b"M 100644 :%d %b\n" % (blob, path.encode()) for path, blob in files) + b"\n"


def _blob(mark: int, content: bytes) -> bytes:
    return b"blob\nmark :%d\n" % mark + _data(content)


def _data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)
