"""The built distributions contain the package and its metadata, and nothing else."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from mergeyard import __version__

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
NAME = f"mergeyard-{__version__}"
INFO = f"{NAME}.dist-info"


pytestmark = pytest.mark.long


def package() -> set[str]:
    """Every file of the package except caches."""
    files = (path for path in (SOURCE / "mergeyard").rglob("*") if path.is_file())
    return {path.relative_to(SOURCE).as_posix() for path in files if "__pycache__" not in path.parts}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> dict[str, bytes]:
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def source(built: Path) -> set[str]:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        return {name.removeprefix(f"{NAME}/") for name in archive.getnames()}


def test_wheel_contains_the_package_and_its_license(wheel: dict[str, bytes]):
    metadata = {f"{INFO}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")}
    assert wheel.keys() == package() | metadata


def test_wheel_contains_the_files_of_this_checkout(wheel: dict[str, bytes]):
    assert [name for name in package() if wheel[name] != (SOURCE / name).read_bytes()] == []


def test_source_distribution_contains_only_what_the_wheel_is_built_from(source: set[str]):
    """No tests, keys, databases or build results."""
    metadata = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md", "PKG-INFO", ".gitignore"}
    assert source == {f"src/{name}" for name in package()} | metadata
