"""Says which paths a glob covers: always whole paths, from the root of the repository.

`*` stands for any characters but `/`, `?` for one of them, and `**` between slashes for any folders or none. What ends
with `/` or `/**` covers everything beneath. All other characters stand for themselves, also brackets: many frameworks
have them in the names of files.
"""

import re
from collections.abc import Iterable
from itertools import groupby

FOLDERS = "(?:[^/]+/)*"
EVERYTHING_BENEATH = ".+"
WILD = {"*": "[^/]*", "?": "[^/]"}


def covering(globs: Iterable[str]) -> re.Pattern[str]:
    """Matches, in full, every path that one of the globs covers."""
    return re.compile("|".join(map(expression, globs)), re.DOTALL)


def expression(glob: str) -> str:
    *above, last = single((f"{glob}**" if glob.endswith("/") else glob).split("/"))
    folders = (FOLDERS if part == "**" else f"{within_a_folder(part)}/" for part in above)
    return "".join(folders) + (EVERYTHING_BENEATH if last == "**" else within_a_folder(last))


def single(parts: list[str]) -> list[str]:
    """Two `**` in a row say as much as one, and would take a regular expression far longer."""
    return [part for wild, run in groupby(parts, "**".__eq__) for part in (["**"] if wild else run)]


def within_a_folder(part: str) -> str:
    return "".join(WILD.get(character) or re.escape(character) for character in re.sub(r"\*+", "*", part))
