"""Where a repository lies: `<root>/<owner>/<name>.git`, and never outside the root."""

import re
from functools import lru_cache
from pathlib import Path

from mergeyard.domain.repositories import Repo
from mergeyard.ports.host import HostTrouble

NAME = re.compile(r"(?!-)(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,100}")


@lru_cache(maxsize=1024)
def folder_of(root: Path, repo: Repo) -> Path:
    """Remembered, because every request asks for it and paths are slow to make."""
    if not (NAME.fullmatch(repo.owner) and NAME.fullmatch(repo.name)):
        raise HostTrouble(f"{repo} is not a name that a repository can have here")
    return root / repo.owner / f"{repo.name}.git"


def is_repository(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def repository_at(path: Path) -> Path | None:
    """The repository that somebody means who points to its folder, or to the folder of its checkout."""
    places = (path.absolute(), path.absolute() / ".git")
    return next((place for place in places if is_repository(place)), None)
