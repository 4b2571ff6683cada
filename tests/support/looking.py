"""Looks at a page as people do who cannot see it well, who like it dark, or who have only a phone."""

import os
import re
from pathlib import Path
from typing import Any, cast

from axe_playwright_python.base import AXE_SCRIPT  # pyright: ignore[reportMissingTypeStubs]
from playwright.sync_api import Page

SCREENSHOTS = "MERGEYARD_SCREENSHOTS"
"""The environment variable that may name a folder for pictures of all pages."""
WCAG = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
CONTRAST = {"type": "rule", "values": ["color-contrast"]}
"""All that a theme may change."""
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 780}
BEYOND = """async () => {
    for (const _ of "ab") await new Promise(requestAnimationFrame);  // charts take their new size with a frame
    const widest = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= widest) return [];
    return [...document.querySelectorAll("body *")]
        .filter(element => element.getBoundingClientRect().right > widest + 1)
        .map(element => element.outerHTML.slice(0, 120)).slice(0, 5).concat(["the page scrolls sideways"]);
}"""


def flaws_of(page: Page, name: str) -> list[str]:
    """In both themes, on a desk and on a phone; with pictures, if somebody wants them."""
    flaws = list[str]()
    page.evaluate(AXE_SCRIPT)
    for theme, rules in (("light", WCAG), ("dark", CONTRAST)):
        page.emulate_media(color_scheme=cast(Any, theme))
        flaws += [f"{name}, {theme}: {flaw}" for flaw in _barriers(page, rules)]
        picture(page, f"{name}-{theme}")
        page.set_viewport_size(cast(Any, PHONE))
        flaws += [f"{name}, {theme}, on a phone: {flaw}" for flaw in page.evaluate(BEYOND)]
        picture(page, f"{name}-{theme}-phone")
        page.set_viewport_size(cast(Any, DESKTOP))
    return flaws


def picture(page: Page, name: str) -> None:
    if folder := os.environ.get(SCREENSHOTS):
        page.screenshot(path=Path(folder) / f"{re.sub(r'[^a-z0-9-]+', '-', name.lower())}.png", full_page=True)


def _barriers(page: Page, rules: dict[str, Any]) -> list[str]:
    found = page.evaluate("rules => axe.run({ runOnly: rules, resultTypes: ['violations'] })", rules)
    return [
        f"{violation['id']}: {violation['help']}: {node['html'][:160]} {node['failureSummary'][:300]}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]
