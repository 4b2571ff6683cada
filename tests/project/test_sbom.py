"""The bill of materials lists everything that the service runs, as valid CycloneDX, and is reproducible."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import json

from tools import sbom
from tools.lock import RUN, pins
from tools.vendored import FOLDER, license_texts, vendored

BILL: dict[str, Any] = sbom.bill()
PARTS: list[dict[str, Any]] = BILL["components"]
KINDS = {"application", "library", "file"}
PURL = re.compile(r"pkg:(?:pypi|npm)/[a-z0-9][\w.-]*@[\w.]+")


def all_parts(parts: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for part in parts:
        yield part
        yield from all_parts(part.get("components", []))


ALL_PARTS = [BILL["metadata"]["component"], *all_parts(PARTS)]
each_part = pytest.mark.parametrize("part", ALL_PARTS, ids=lambda part: part["name"])


def test_document_is_cyclonedx_1_6():
    """With everything that the schema requires."""
    assert (BILL["bomFormat"], BILL["specVersion"], BILL["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", BILL["serialNumber"])
    known = {"$schema", "bomFormat", "specVersion", "serialNumber", "version", "metadata", "components", "dependencies"}
    assert BILL.keys() <= known


@each_part
def test_part_has_everything_that_the_schema_requires(part: dict[str, Any]):
    assert part["type"] in KINDS
    assert part["name"]
    assert part["type"] == "file" or PURL.fullmatch(part["purl"])
    for entry in part.get("licenses", []):
        assert len(entry) == 1
        assert entry.get("expression") or entry["license"].get("id") or entry["license"].get("name")
    for reference in part.get("externalReferences", []):
        assert reference["type"] == "distribution"
        assert reference["url"]


@each_part
def test_external_part_has_hashes(part: dict[str, Any]):
    hashes = [*part.get("hashes", [])]
    hashes += [each for reference in part.get("externalReferences", []) for each in reference["hashes"]]
    assert hashes or part["type"] == "application" or part["purl"].startswith("pkg:npm/")
    assert all(each["alg"] == "SHA-256" and re.fullmatch("[0-9a-f]{64}", each["content"]) for each in hashes)


def test_references_are_unique_and_resolve():
    references = [part["bom-ref"] for part in ALL_PARTS]
    assert len(references) == len(set(references))
    for each in BILL["dependencies"]:
        assert {each["ref"], *each["dependsOn"]} <= set(references)
    dependents = [each["ref"] for each in BILL["dependencies"]]
    assert len(dependents) == len(set(dependents))


def test_parts_are_the_pinned_and_vendored_packages():
    assert {part["purl"] for part in PARTS} == {each.purl for each in (*pins(RUN), *vendored())}


def test_every_part_has_a_license():
    assert [part["name"] for part in PARTS if not part.get("licenses")] == []


def test_every_vendored_file_is_in_the_table_of_its_folder():
    """Except the table itself and the license texts that it names."""
    listed = {name for package in vendored() for name in package.files} | license_texts() | {"README.md"}
    assert {path.name for path in FOLDER.iterdir()} == listed


def test_same_lock_gives_the_same_bill():
    assert json.encode(sbom.bill()) == json.encode(BILL)
