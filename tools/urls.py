"""Replaces the addresses of the project, in pyproject.toml and in every other file that names them.

make urls REPOSITORY=https://git.example.com/mergeyard/mergeyard DOCUMENTATION=https://docs.example.com/mergeyard
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACES = (
    *("README.md", "SECURITY.md", "CONTRIBUTING.md", "mkdocs.yml", "Dockerfile", "deploy", "docs"),
    *("src/mergeyard/cli/server.py", "pyproject.toml"),
)
"""Files, and folders with all their files. The last one has the old addresses: an interrupted run can be repeated."""
ADDRESS = re.compile(r"https://[\w.-]+(?:/[\w.-]+)*")


def read_addresses(root: Path) -> tuple[str, str]:
    """The repository and the documentation, by pyproject.toml."""
    urls = tomllib.loads((root / "pyproject.toml").read_text())["project"]["urls"]
    return urls["Repository"], urls["Documentation"]


def replace_addresses(root: Path, new: tuple[str, str]) -> Iterator[Path]:
    """Yields the changed files."""
    old = read_addresses(root)
    for path in list_files(root):
        before = path.read_bytes()
        after = before
        for address, replacement in zip(old, new, strict=True):
            after = after.replace(address.encode(), replacement.encode())
        if after != before:
            path.write_bytes(after)
            yield path


def list_files(root: Path) -> Iterator[Path]:
    for place in map(root.joinpath, PLACES):
        yield from sorted(path for path in (place, *place.rglob("*")) if path.is_file())


def main() -> None:
    repository, documentation = sys.argv[1:]
    for address in (repository, documentation):
        if not ADDRESS.fullmatch(address):
            sys.exit(f"{address!r} is not an https:// address without a slash at its end.\n{__doc__}")
    for path in replace_addresses(ROOT, (repository, documentation)):
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
