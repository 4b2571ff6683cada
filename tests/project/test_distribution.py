"""The built distributions contain the package and its metadata, and nothing else. The wheel runs with the packages of
requirements/run.txt alone, and with those of requirements/lowest.txt."""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import httpx2
import pytest
from msgspec import json

from mergeyard import __version__
from tests.support.polling import eventually
from tools.lock import LOWEST, RUN, pins
from tools.vendored import FOLDER, license_texts, vendored

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
NAME = f"mergeyard-{__version__}"
INFO = f"{NAME}.dist-info"


pytestmark = pytest.mark.long


def package() -> set[str]:
    """Every file of the package except caches."""
    files = (path for path in (SOURCE / "mergeyard").rglob("*") if path.is_file())
    return {path.relative_to(SOURCE).as_posix() for path in files if "__pycache__" not in path.parts}


def vendored_license_texts() -> set[str]:
    return {(FOLDER / name).relative_to(ROOT).as_posix() for name in license_texts()}


def build(folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))


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
    metadata = {f"{INFO}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")}
    licenses = {f"{INFO}/licenses/{name}" for name in ("LICENSE", *vendored_license_texts())}
    assert wheel.keys() == package() | metadata | licenses


def test_license_of_the_wheel_names_those_of_vendored_files(wheel: dict[str, bytes]):
    (expression,) = re.findall("^License-Expression: (.+)$", wheel[f"{INFO}/METADATA"].decode(), re.MULTILINE)
    assert set(expression.split(" AND ")) == {"Apache-2.0", *(package.license for package in vendored())}


def test_wheel_contains_the_files_of_this_checkout(wheel: dict[str, bytes]):
    assert [name for name in package() if wheel[name] != (SOURCE / name).read_bytes()] == []


def test_source_distribution_contains_only_what_the_wheel_is_built_from(source: set[str]):
    """No tests, keys, databases or build results."""
    metadata = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md", "PKG-INFO", ".gitignore"}
    assert source == {f"src/{name}" for name in package()} | metadata


def test_same_sources_give_the_same_files(built: Path, tmp_path: Path):
    again = build(tmp_path)
    assert {path.name: path.read_bytes() for path in again.iterdir()} == {
        path.name: path.read_bytes() for path in built.iterdir()
    }


# The installed wheel


LAST_PYTHON_OF_LOWEST = (3, 13)
"""The last that all lowest versions were published for as wheels."""


@pytest.fixture(scope="module", params=[RUN, LOWEST], ids=lambda lock: lock.stem)
def command(request: pytest.FixtureRequest, built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`mergeyard` of an environment with the wheel and with the packages of a lock."""
    environment = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    if request.param == RUN:
        copy_packages_of_run(environment)
    else:
        install_lowest_packages(environment)
    (wheel,) = built.glob("*.whl")
    offline = ("--no-deps", "--no-index", "--quiet")
    subprocess.run([environment / "bin" / "pip", "install", *offline, wheel], check=True)
    return environment / "bin" / "mergeyard"


def copy_packages_of_run(environment: Path) -> None:
    """They are installed here."""
    (site_packages,) = environment.glob("lib/python*/site-packages")
    for pin in pins(RUN):
        copy_package(pin.name, site_packages)


def install_lowest_packages(environment: Path) -> None:
    if sys.version_info[:2] > LAST_PYTHON_OF_LOWEST:
        pytest.skip("the lowest versions have no wheels for this Python")
    hashed = ("--require-hashes", "--only-binary", ":all:", "--requirement", LOWEST)
    subprocess.run([environment / "bin" / "pip", "install", "--quiet", *hashed], check=True)


def copy_package(name: str, site_packages: Path) -> None:
    """Nothing for a package that only other platforms need."""
    try:
        package = distribution(name)
    except PackageNotFoundError:
        return
    for file in package.files or ():
        if ".." not in file.parts and file.suffix != ".pyc":
            copy = site_packages / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(str(file.locate())), copy)


def test_installed_wheel_prints_its_version(command: Path, tmp_path: Path):
    result = subprocess.run([command, "--version"], cwd=tmp_path, env={}, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == f"mergeyard {__version__}"


def test_installed_wheel_serves(command: Path, tmp_path: Path):
    (tmp_path / "mergeyard.toml").write_text('port = 0\nlog_format = "json"\n')
    log = tmp_path / "log"
    with (
        log.open("wb") as output,
        subprocess.Popen([command, "serve"], cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, stderr=output) as server,
    ):
        try:
            url = eventually(lambda: server.poll() or listening_url(log), 60, log.read_text)
            assert isinstance(url, str), log.read_text()
            assert httpx2.get(f"{url}/healthz").status_code == 200
            page = httpx2.get(f"{url}/sign-in")
            assert "Sign in" in page.text
        finally:
            server.terminate()
    assert server.returncode == 0, log.read_text()
    assert (tmp_path / "mergeyard-data" / "mergeyard.db").exists()


def listening_url(log: Path) -> str:
    complete_lines = log.read_bytes().split(b"\n")[:-1]
    return next((json.decode(line)["url"] for line in complete_lines if b'"listening"' in line), "")
