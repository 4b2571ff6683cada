"""Writes the software bill of materials into dist/: all components of the service, as CycloneDX 1.6.

Pins come from the lock file, licenses from the installed packages, and vendored files from their folder. The same
lock file gives the same document, byte for byte.
"""

import hashlib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from msgspec import json

from mergeyard import __version__
from tools.lock import PROJECT_NAME, ROOT, RUN, Pin, pins
from tools.vendored import FOLDER, Vendored, vendored

Part = dict[str, Any]

OWN_PURL = f"pkg:pypi/{PROJECT_NAME}@{__version__}"
MAX_LICENSE_NAME_LENGTH = 100
APPROVED = "License :: OSI Approved :: "


def bill() -> Part:
    locked, shipped = pins(RUN), vendored()
    components = [*map(_package, locked), *map(_vendored, shipped)]
    contents = {
        "metadata": {"component": _describe_project()},
        "components": components,
        "dependencies": [*_dependencies(locked, shipped)],
    }
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, json.encode(contents).decode())}",
        "version": 1,
        **contents,
    }


def _describe_project() -> Part:
    return {
        "type": "application",
        "bom-ref": OWN_PURL,
        "name": PROJECT_NAME,
        "version": __version__,
        "purl": OWN_PURL,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }


def _package(pin: Pin) -> Part:
    """A pin has a hash for every published archive: one of them is the installed one."""
    archives = {
        "type": "distribution",
        "url": f"https://pypi.org/project/{pin.name}/{pin.version}/#files",
        "hashes": [{"alg": "SHA-256", "content": content} for content in pin.hashes],
    }
    part = _library(pin.name, pin.version, pin.purl) | {"externalReferences": [archives]}
    if licenses := _licenses(pin.name):
        part["licenses"] = licenses
    if pin.marker:
        part["properties"] = [{"name": "mergeyard:needed-where", "value": pin.marker}]
    return part


def _vendored(package: Vendored) -> Part:
    files = [_file(name) for name in package.files]
    licenses = [{"license": {"id": package.license}}]
    return _library(package.package, package.version, package.purl) | {"licenses": licenses, "components": files}


def _library(name: str, version: str, purl: str) -> Part:
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def _file(name: str) -> Part:
    content = hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()
    path = f"mergeyard/web/static/vendor/{name}"
    return {"type": "file", "bom-ref": path, "name": path, "hashes": [{"alg": "SHA-256", "content": content}]}


def _licenses(name: str) -> list[Part]:
    """Returns an empty list for a package that is not installed because only other platforms need it."""
    try:
        package = distribution(name)
    except PackageNotFoundError:
        return []
    if expressions := _metadata_values(package, "License-Expression"):
        return [{"expression": expression} for expression in expressions[:1]]
    approved = [
        value.removeprefix(APPROVED) for value in _metadata_values(package, "Classifier") if value.startswith(APPROVED)
    ]
    short = [value for value in _metadata_values(package, "License") if len(value) <= MAX_LICENSE_NAME_LENGTH]
    return [{"license": {"name": name}} for name in approved or short]


def _metadata_values(package: Distribution, field: str) -> list[str]:
    return [value for value in package.metadata.get_all(field) or [] if value]


def _dependencies(locked: list[Pin], shipped: list[Vendored]) -> list[Part]:
    dependencies: dict[str, list[str]] = {OWN_PURL: [package.purl for package in shipped]}
    purls = {pin.name: pin.purl for pin in locked}
    for pin in locked:
        dependencies.setdefault(pin.purl, [])
        for name in pin.required_by:
            dependencies.setdefault(purls.get(name, OWN_PURL), []).append(pin.purl)
    return [{"ref": ref, "dependsOn": sorted(parts)} for ref, parts in sorted(dependencies.items())]


def main() -> None:
    place = ROOT / "dist" / f"{PROJECT_NAME}-{__version__}.cdx.json"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(json.format(json.encode(bill()), indent=2) + b"\n")
    print(place.relative_to(ROOT))


if __name__ == "__main__":
    main()
