"""Adds files outside of docs/ that pages link to to the site, and fails when a page loads anything from another host.

On a Git host the same links lead to the files themselves, so pages work on both.
"""

import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Any, cast

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
GUESTS = "project"
ICON = "src/mergeyard/api/static/icon.svg"

CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:|#)([^()\s#]+)(#[^()\s]*)?\)")
FOREIGN = re.compile(r"<(?:script|img|iframe|link|source)\b[^>]*\b(?:src|srcset|href)=[\"']?(?:https?:)?//[^\"'\s>]*")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replaces a folder in the navigation by all of its pages."""
    config["nav"] = unfolded(config["nav"])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    named = [in_project(page) for page in pages_in(config["nav"])]
    pages = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    for path in sorted(reached([*named, *pages])):
        if not path.startswith("docs/"):
            files.append(File.generated(config, f"{GUESTS}/{path}", abs_src_path=str(ROOT / path)))
    files.append(File.generated(config, "pictures/icon.svg", abs_src_path=str(ROOT / ICON)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    here = page.file.src_uri

    def moved(link: re.Match[str]) -> str:
        target = in_site(normpath(join(dirname(in_project(here)), link[1])))
        return f"]({relpath(target, dirname(here) or '.')}{link[2] or ''})"

    parts = CODE.split(markdown)
    parts[::2] = [LINK.sub(moved, text) for text in parts[::2]]
    return "".join(parts)


def on_post_page(output: str, page: Page, **_: object) -> str:
    if foreign := FOREIGN.findall(output):
        raise PluginError(f"{page.file.src_uri} would load from another host: {', '.join(foreign)}")
    return output


def reached(paths: list[str]) -> set[str]:
    """Returns these paths and all that they link to in the project, transitively."""
    known, unread = set[str](), [*paths]
    while unread:
        path = unread.pop()
        if path not in known:
            known.add(path)
            unread += links(path) if path.endswith(".md") else ()
    return known


def links(path: str) -> list[str]:
    if not (ROOT / path).is_file():
        return []
    text = CODE.sub("", (ROOT / path).read_text(encoding="utf-8"))
    found = (normpath(join(dirname(path), target)) for target, _ in LINK.findall(text))
    return [each for each in found if (ROOT / each).is_file()]


def in_site(path: str) -> str:
    return path.removeprefix("docs/") if path.startswith("docs/") else f"{GUESTS}/{path}"


def in_project(uri: str) -> str:
    return uri.removeprefix(f"{GUESTS}/") if uri.startswith(f"{GUESTS}/") else f"docs/{uri}"


def unfolded(navigation: Any) -> Any:
    match navigation:
        case str() if navigation.endswith("/"):
            pages = sorted(
                (ROOT / "docs" / navigation).glob("*.md"), key=lambda page: (page.stem != "README", page.name)
            )
            return [f"{navigation}{page.name}" for page in pages]
        case dict():
            return {title: unfolded(part) for title, part in cast(dict[str, Any], navigation).items()}
        case list():
            return [unfolded(part) for part in cast(list[Any], navigation)]
        case _:
            return navigation


def pages_in(navigation: Any) -> list[str]:
    match navigation:
        case str():
            return [navigation]
        case dict():
            return [page for part in cast(dict[str, Any], navigation).values() for page in pages_in(part)]
        case list():
            return [page for part in cast(list[Any], navigation) for page in pages_in(part)]
        case _:
            return []
