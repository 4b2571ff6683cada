"""The bill of materials names all that runs with the service, as CycloneDX wants it, and always alike."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import json

from tools import sbom
from tools.lock import RUN, pins
from tools.vendored import FOLDER, licence_texts, vendored

BILL: dict[str, Any] = sbom.bill()
PARTS: list[dict[str, Any]] = BILL["components"]
KINDS = {"application", "library", "file"}
PURL = re.compile(r"pkg:(?:pypi|npm)/[a-z0-9][\w.-]*@[\w.]+")


def all_parts(parts: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for part in parts:
        yield part
        yield from all_parts(part.get("components", []))


EVERY_PART = [BILL["metadata"]["component"], *all_parts(PARTS)]
every_part = pytest.mark.parametrize("part", EVERY_PART, ids=lambda part: part["name"])


def test_it_is_cyclonedx_1_6():
    """With all that the schema requires of a document."""
    assert (BILL["bomFormat"], BILL["specVersion"], BILL["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", BILL["serialNumber"])
    known = {"$schema", "bomFormat", "specVersion", "serialNumber", "version", "metadata", "components", "dependencies"}
    assert BILL.keys() <= known


@every_part
def test_a_part_has_all_that_the_schema_requires(part: dict[str, Any]):
    assert part["type"] in KINDS
    assert part["name"]
    assert part["type"] == "file" or PURL.fullmatch(part["purl"])
    for licence in part.get("licenses", []):
        assert len(licence) == 1
        assert licence.get("expression") or licence["license"].get("id") or licence["license"].get("name")
    for reference in part.get("externalReferences", []):
        assert reference["type"] == "distribution"
        assert reference["url"]


@every_part
def test_a_part_that_was_brought_in_is_known_by_its_hashes(part: dict[str, Any]):
    hashes = [*part.get("hashes", [])]
    hashes += [each for reference in part.get("externalReferences", []) for each in reference["hashes"]]
    assert hashes or part["type"] == "application" or part["purl"].startswith("pkg:npm/")
    assert all(each["alg"] == "SHA-256" and re.fullmatch("[0-9a-f]{64}", each["content"]) for each in hashes)


def test_every_name_in_it_is_one_of_its_own_and_stands_once():
    names = [part["bom-ref"] for part in EVERY_PART]
    assert len(names) == len(set(names))
    for each in BILL["dependencies"]:
        assert {each["ref"], *each["dependsOn"]} <= set(names)
    told = [each["ref"] for each in BILL["dependencies"]]
    assert len(told) == len(set(told))


def test_it_names_what_is_pinned_and_what_is_vendored():
    assert {part["purl"] for part in PARTS} == {each.purl for each in (*pins(RUN), *vendored())}


def test_licences_are_told_of_everything():
    assert [part["name"] for part in PARTS if not part.get("licenses")] == []


def test_every_vendored_file_is_in_the_table_beside_it():
    """But for the table itself, and the texts of licences that it names."""
    told = {name for package in vendored() for name in package.files} | licence_texts() | {"README.md"}
    assert {path.name for path in FOLDER.iterdir()} == told


def test_the_same_lock_gives_the_same_bill():
    assert json.encode(sbom.bill()) == json.encode(BILL)
