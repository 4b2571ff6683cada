"""The page about the API is our own, and safe to open."""

import re

import pytest

from mergeyard.api.docs_page import FILES
from tests.support.door import get

NOBODY = {"accept": "*/*"}


@pytest.mark.parametrize("path", FILES)
def test_every_file_of_the_page_is_served_to_everybody_and_guarded(path: str):
    response = get(path, headers=NOBODY)
    assert response.status_code == 200
    assert response.text.strip()
    assert response.headers["content-security-policy"].startswith("default-src 'self'")
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", FILES)
def test_nothing_is_fetched_from_another_host(path: str):
    text = get(path, headers=NOBODY).text.replace("http://www.w3.org/2000/svg", "")
    assert "http:" not in text
    assert "https:" not in text


def test_the_page_needs_only_files_that_are_served():
    page = get("/docs", headers=NOBODY).text
    assert set(re.findall(r'(?:src|href)="(/[^"]*)"', page)) <= FILES.keys() | {"/openapi.json"}


def test_no_script_or_style_stands_in_the_page_itself():
    page = get("/docs", headers=NOBODY).text
    assert re.findall(r"<script[^>]*>[^<]|<style|\sstyle=|\son\w+=", page) == []


def test_scripts_never_write_html():
    for path in ("/docs/docs.js", "/docs/render.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", get(path, headers=NOBODY).text
        )
