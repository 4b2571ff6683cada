"""Examples of requests and responses: `make api-page` records them from a real service in `examples.json`."""

from pathlib import Path
from typing import Any

from msgspec import Struct, json


class Example(Struct, frozen=True):
    request: Any
    """None if the endpoint takes no body."""
    response: Any


EXAMPLES_FILE = Path(__file__).with_name("examples.json")
EXAMPLES = json.decode(EXAMPLES_FILE.read_bytes(), type=dict[str, Example])
"""By the name of the endpoint."""
