"""Compares what we depend on with what the registries say of it now.

    python -m tools.audit_deps

Of every pin: that what its hashes name was published and not withdrawn, that there is a wheel for both architectures
and every Python that we run on, and that no fault of the version is known. Of every vendored file: that it is what was
published. A question that no registry answers is NOT CHECKED, and said so; exits with 1 when anything is wrong.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import httpx
from msgspec import Struct

from tools.lock import RUN, TEST, Pin, pins
from tools.registries import Archive, Fault, JavascriptRegistry, NotTold, PythonRegistry
from tools.vendored import FOLDER, Vendored, vendored

AT_ONCE = 8
SECONDS = 30.0
ARCHITECTURES = ("x86_64", "aarch64")
PYTHONS = ("cp311", "cp312", "cp313", "cp314")

Asked = TypeVar("Asked")


class Report(Struct, frozen=True):
    question: str
    checked: int
    wrong: list[str]
    not_told: list[str]

    def __str__(self) -> str:
        if self.not_told and not self.checked:
            return f"NOT CHECKED: {self.question}. {self.not_told[0]}."
        missing = f", {len(self.not_told)} NOT CHECKED ({self.not_told[0]})" if self.not_told else ""
        return "\n  ".join([f"{self.question}: {self.checked} checked, {len(self.wrong)} wrong{missing}", *self.wrong])


def audit(pypi: str, npm: str, locks: Iterable[Path] = (RUN, TEST), folder: Path = FOLDER) -> list[Report]:
    locked = {pin.purl: pin for lock in locks for pin in pins(lock)}.values()
    shipped = vendored(folder)
    with httpx.Client(timeout=SECONDS, follow_redirects=True) as client:
        python, javascript = PythonRegistry(client, pypi), JavascriptRegistry(client, npm)
        return [
            _asked("pins are published", locked, lambda pin: wrong_with(pin, python.archives(pin))),
            _asked("pins have no known fault", locked, lambda pin: _words(python.faults(pin))),
            _asked("vendored files are as published", shipped, lambda each: changed(each, javascript, folder)),
            _asked("vendored files have no known fault", [shipped], lambda all_: _words(javascript.faults(all_))),
        ]


def _asked(question: str, about: Iterable[Asked], ask: Callable[[Asked], Iterable[str]]) -> Report:
    wrong, not_told, checked = list[str](), list[str](), 0

    def answer(each: Asked) -> list[str] | str:
        try:
            return list(ask(each))
        except (NotTold, httpx.HTTPError) as trouble:
            return str(trouble)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        for told in threads.map(answer, about):
            if isinstance(told, str):
                not_told.append(told)
            else:
                checked += 1
                wrong += told
    return Report(question, checked, wrong, not_told)


def wrong_with(pin: Pin, published: list[Archive]) -> Iterator[str]:
    own = [archive for archive in published if archive.sha256 in pin.hashes]
    if unknown := set(pin.hashes) - {archive.sha256 for archive in own}:
        yield f"{pin.name} {pin.version}: {len(unknown)} of its hashes were never published"
    if any(archive.withdrawn for archive in own):
        yield f"{pin.name} {pin.version} was withdrawn: take another with `make lock UPGRADE=1`"
    wheels = [archive.name for archive in own if archive.name.endswith(".whl")]
    lacking = [
        (python, machine) for python in PYTHONS for machine in ARCHITECTURES if not fits(wheels, python, machine)
    ]
    if lacking and "win32" not in pin.where:
        places = ", ".join(f"{python} on {machine}" for python, machine in lacking)
        yield f"{pin.name} {pin.version} has no wheel for {places}"


def fits(wheels: Iterable[str], python: str, machine: str) -> bool:
    return any(_runs_on(wheel, python, machine) for wheel in wheels)


def _runs_on(wheel: str, python: str, machine: str) -> bool:
    """By its name: `name-version-python-abi-platform.whl`."""
    *_, pythons, abi, platform = wheel.removesuffix(".whl").split("-")
    right_python = any(_serves(tag, abi, python) for tag in pythons.split("."))
    return right_python and (platform == "any" or ("linux" in platform and machine in platform))


def _serves(tag: str, abi: str, python: str) -> bool:
    """What uses nothing of one Python alone serves every later one too."""
    lasting = tag.startswith("py3") or abi == "abi3"
    return tag == python or (lasting and _minor(tag) <= _minor(python))


def _minor(tag: str) -> int:
    return int(tag[3:] or 0) if tag[:3] in {"py3", "cp3"} else 99


def changed(package: Vendored, registry: JavascriptRegistry, folder: Path) -> Iterator[str]:
    published = registry.published(package)
    for ours, theirs in package.files.items():
        if published.get(theirs) != (folder / ours).read_bytes():
            yield f"{ours} is not {theirs} of {package.package} {package.version}"


def _words(faults: Iterable[Fault]) -> list[str]:
    return [f"{fault.package}: {fault.id}, {fault.words}" for fault in faults]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pypi", default="https://pypi.org")
    parser.add_argument("--npm", default="https://registry.npmjs.org")
    options = parser.parse_args()
    reports = audit(options.pypi, options.npm)
    print(*reports, sep="\n")
    if any(report.wrong for report in reports):
        sys.exit("Something is wrong with what we depend on: see above.")


if __name__ == "__main__":
    main()
