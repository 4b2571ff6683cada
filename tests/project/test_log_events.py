"""Every event that the server logs at the level info is described in the monitoring page, and no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operate" / "monitoring.md").read_text()


def logged_events() -> Iterator[str]:
    """The first argument of each `log.info` in the source."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="log"), attr="info"), args=[ast.Constant(value=str() as event)]
                ):
                    yield event
                case ast.Call(func=ast.Attribute(value=ast.Name(id="log"), attr="info")):
                    raise AssertionError(f"{path}:{node.lineno}: the event must be a literal")
                case _:
                    pass


def described_events() -> set[str]:
    (table,) = re.findall(r"^\| event \| when \| fields \|\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return {event for row in table.splitlines() for event in re.findall(r"`(\w+)`", row.split("|")[1])}


def test_every_event_at_the_level_info_is_described():
    assert described_events() == {*logged_events(), "request"}
