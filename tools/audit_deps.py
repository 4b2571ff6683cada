"""Compares the dependencies with the current data of the registries.

    python -m tools.audit_deps

For every pin: the archives of its hashes are published and not withdrawn, there is a wheel for both architectures
and every supported Python, and no vulnerability of the version is known. For every vendored file: it is identical to
the published one. A check that no registry answers is reported as NOT CHECKED; exits with 1 when anything is wrong.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import httpx2
from msgspec import Struct

from tools.lock import RUN, TEST, Pin, pins
from tools.registries import Archive, DataUnavailable, JavascriptRegistry, PythonRegistry, Vulnerability
from tools.vendored import FOLDER, Vendored, vendored

MAX_CONCURRENT_REQUESTS = 8
TIMEOUT_S = 30.0
ARCHITECTURES = ("x86_64", "aarch64")
PYTHONS = ("cp311", "cp312", "cp313", "cp314", "cp315")

Item = TypeVar("Item")


class Report(Struct, frozen=True):
    title: str
    checked: int
    wrong: list[str]
    unchecked: list[str]

    def __str__(self) -> str:
        if self.unchecked and not self.checked:
            return f"NOT CHECKED: {self.title}. {self.unchecked[0]}."
        missing = f", {len(self.unchecked)} NOT CHECKED ({self.unchecked[0]})" if self.unchecked else ""
        return "\n  ".join([f"{self.title}: {self.checked} checked, {len(self.wrong)} wrong{missing}", *self.wrong])


def audit(pypi: str, npm: str, locks: Iterable[Path] = (RUN, TEST), folder: Path = FOLDER) -> list[Report]:
    locked = {pin.purl: pin for lock in locks for pin in pins(lock)}.values()
    shipped = vendored(folder)
    with httpx2.Client(timeout=TIMEOUT_S, follow_redirects=True) as client:
        python, javascript = PythonRegistry(client, pypi), JavascriptRegistry(client, npm)
        return [
            _run_check("pins are published", locked, lambda pin: find_pin_problems(pin, python.archives(pin))),
            _run_check("pins have no known vulnerability", locked, lambda pin: _describe(python.vulnerabilities(pin))),
            _run_check(
                "vendored files are as published", shipped, lambda each: find_changed_files(each, javascript, folder)
            ),
            _run_check(
                "vendored files have no known vulnerability",
                [shipped],
                lambda all_: _describe(javascript.vulnerabilities(all_)),
            ),
        ]


def _run_check(title: str, items: Iterable[Item], check: Callable[[Item], Iterable[str]]) -> Report:
    wrong, unchecked, checked = list[str](), list[str](), 0

    def check_item(each: Item) -> list[str] | str:
        try:
            return list(check(each))
        except (DataUnavailable, httpx2.HTTPError) as error:
            return str(error)

    with ThreadPoolExecutor(MAX_CONCURRENT_REQUESTS) as threads:
        for result in threads.map(check_item, items):
            if isinstance(result, str):
                unchecked.append(result)
            else:
                checked += 1
                wrong += result
    return Report(title, checked, wrong, unchecked)


def find_pin_problems(pin: Pin, published: list[Archive]) -> Iterator[str]:
    own = [archive for archive in published if archive.sha256 in pin.hashes]
    if unknown := set(pin.hashes) - {archive.sha256 for archive in own}:
        yield f"{pin.name} {pin.version}: {len(unknown)} of its hashes were never published"
    if any(archive.withdrawn for archive in own):
        yield f"{pin.name} {pin.version} was withdrawn: take another with `make lock UPGRADE=1`"
    wheels = [archive.name for archive in own if archive.name.endswith(".whl")]
    lacking = [
        (python, machine)
        for python in PYTHONS
        for machine in ARCHITECTURES
        if not has_wheel_for(wheels, python, machine)
    ]
    if lacking and "win32" not in pin.marker:
        places = ", ".join(f"{python} on {machine}" for python, machine in lacking)
        yield f"{pin.name} {pin.version} has no wheel for {places}"


def has_wheel_for(wheels: Iterable[str], python: str, machine: str) -> bool:
    return any(_wheel_runs_on(wheel, python, machine) for wheel in wheels)


def _wheel_runs_on(wheel: str, python: str, machine: str) -> bool:
    """Reads the tags of the wheel's name: `name-version-python-abi-platform.whl`."""
    *_, pythons, abi, platform = wheel.removesuffix(".whl").split("-")
    right_python = any(_is_compatible(tag, abi, python) for tag in pythons.split("."))
    return right_python and (platform == "any" or ("linux" in platform and machine in platform))


def _is_compatible(tag: str, abi: str, python: str) -> bool:
    """A wheel for py3 or with the stable ABI also works on every later Python."""
    is_forward_compatible = tag.startswith("py3") or abi == "abi3"
    return tag == python or (is_forward_compatible and _minor(tag) <= _minor(python))


def _minor(tag: str) -> int:
    return int(tag[3:] or 0) if tag[:3] in {"py3", "cp3"} else 99


def find_changed_files(package: Vendored, registry: JavascriptRegistry, folder: Path) -> Iterator[str]:
    published = registry.published(package)
    for ours, theirs in package.files.items():
        if published.get(theirs) != (folder / ours).read_bytes():
            yield f"{ours} is not {theirs} of {package.package} {package.version}"


def _describe(vulnerabilities: Iterable[Vulnerability]) -> list[str]:
    return [
        f"{vulnerability.package}: {vulnerability.id}, {vulnerability.summary}" for vulnerability in vulnerabilities
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pypi", default="https://pypi.org")
    parser.add_argument("--npm", default="https://registry.npmjs.org")
    options = parser.parse_args()
    reports = audit(options.pypi, options.npm)
    print(*reports, sep="\n")
    if any(report.wrong for report in reports):
        sys.exit("Some dependencies have problems: see above.")


if __name__ == "__main__":
    main()
