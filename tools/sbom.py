"""Writes the bill of materials: all that runs with the service, as CycloneDX 1.6.

    python -m tools.sbom dist/mergeyard.cdx.json

What is pinned is read off the lock, licences off what is installed, and vendored files off their folder. The same
lock gives the same document, to the byte.
"""

import hashlib
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from msgspec import json

from mergeyard import __version__
from tools.lock import OURSELVES, RUN, Pin, pins
from tools.vendored import FOLDER, Vendored, vendored

Part = dict[str, Any]

OWN_PURL = f"pkg:pypi/{OURSELVES}@{__version__}"
LONGEST_NAME_OF_A_LICENCE = 100
APPROVED = "License :: OSI Approved :: "


def bill() -> Part:
    locked, shipped = pins(RUN), vendored()
    components = [*map(_package, locked), *map(_vendored, shipped)]
    contents = {
        "metadata": {"component": _ourselves()},
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


def _ourselves() -> Part:
    return {
        "type": "application",
        "bom-ref": OWN_PURL,
        "name": OURSELVES,
        "version": __version__,
        "purl": OWN_PURL,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }


def _package(pin: Pin) -> Part:
    """A pin has a hash for every archive that was published: one of them is what is installed."""
    archives = {
        "type": "distribution",
        "url": f"https://pypi.org/project/{pin.name}/{pin.version}/#files",
        "hashes": [{"alg": "SHA-256", "content": content} for content in pin.hashes],
    }
    part = _library(pin.name, pin.version, pin.purl) | {"externalReferences": [archives]}
    if licences := _licences(pin.name):
        part["licenses"] = licences
    if pin.where:
        part["properties"] = [{"name": "mergeyard:needed-where", "value": pin.where}]
    return part


def _vendored(package: Vendored) -> Part:
    files = [_file(name) for name in package.files]
    licences = [{"license": {"id": package.licence}}]
    return _library(package.package, package.version, package.purl) | {"licenses": licences, "components": files}


def _library(name: str, version: str, purl: str) -> Part:
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def _file(name: str) -> Part:
    content = hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()
    path = f"mergeyard/web/static/vendor/{name}"
    return {"type": "file", "bom-ref": path, "name": path, "hashes": [{"alg": "SHA-256", "content": content}]}


def _licences(name: str) -> list[Part]:
    """None for what is not installed here, because it is needed only elsewhere."""
    try:
        told = distribution(name)
    except PackageNotFoundError:
        return []
    if expressions := _said(told, "License-Expression"):
        return [{"expression": expression} for expression in expressions[:1]]
    approved = [word.removeprefix(APPROVED) for word in _said(told, "Classifier") if word.startswith(APPROVED)]
    short = [word for word in _said(told, "License") if len(word) <= LONGEST_NAME_OF_A_LICENCE]
    return [{"license": {"name": name}} for name in approved or short]


def _said(told: Distribution, field: str) -> list[str]:
    return [word for word in told.metadata.get_all(field) or [] if word]


def _dependencies(locked: list[Pin], shipped: list[Vendored]) -> list[Part]:
    wanted: dict[str, list[str]] = {OWN_PURL: [package.purl for package in shipped]}
    purls = {pin.name: pin.purl for pin in locked}
    for pin in locked:
        wanted.setdefault(pin.purl, [])
        for name in pin.wanted_by:
            wanted.setdefault(purls.get(name, OWN_PURL), []).append(pin.purl)
    return [{"ref": ref, "dependsOn": sorted(parts)} for ref, parts in sorted(wanted.items())]


def main() -> None:
    (place,) = map(Path, sys.argv[1:])
    place.parent.mkdir(parents=True, exist_ok=True)
    made = bill()
    place.write_bytes(json.format(json.encode(made), indent=2) + b"\n")
    print(f"{place}: {len(made['components'])} components.")


if __name__ == "__main__":
    main()
