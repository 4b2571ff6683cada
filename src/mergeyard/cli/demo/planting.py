"""Plants the sample: a bare repository with the project and a branch for every pull request, then the pull requests."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from mergeyard.adapters.host_plain.opening import Opening, open_pull
from mergeyard.adapters.host_plain.process import git
from mergeyard.cli.demo.sample import PULLS, Pull
from mergeyard.cli.demo.teahouse import BRANCH, FILES


async def plant(repository: Path) -> None:
    repository.mkdir(parents=True)
    await git(repository, "init", "--quiet", "--bare", "--template=", f"--initial-branch={BRANCH}")
    await git(repository, "fast-import", "--quiet", "--date-format=now", given="".join(history()).encode())
    for pull in PULLS:
        asked = Opening(head=pull.branch, base=BRANCH, title=pull.title, author=pull.author, draft=pull.draft)
        await open_pull(repository, asked)


def history() -> Iterator[str]:
    """Everything as one stream, in the language of `git fast-import`."""
    yield from commit(BRANCH, "Open the tea house", "Ada", FILES)
    for pull in PULLS:
        yield from start_of(pull)
        yield from commit(pull.branch, pull.title, pull.author, pull.files)


def start_of(pull: Pull) -> Iterator[str]:
    yield f"reset refs/heads/{pull.branch}\n"
    yield f"from refs/heads/{pull.upon}\n\n"


def commit(branch: str, message: str, author: str, files: Mapping[str, str]) -> Iterator[str]:
    yield f"commit refs/heads/{branch}\n"
    yield f"committer {author} <{author.lower()}@teahouse.example> now\n"
    yield data(message)
    for path, content in files.items():
        yield f"M 100644 inline {path}\n"
        yield data(content)


def data(content: str) -> str:
    return f"data {len(content.encode())}\n{content}\n"
