"""What pages are made of, read once: whoever upgrades a server while it runs does not mix two versions."""

from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable


def _within(folder: Traversable, above: str = "") -> dict[str, bytes]:
    found = dict[str, bytes]()
    for entry in folder.iterdir():
        name = f"{above}{entry.name}"
        found |= _within(entry, f"{name}/") if entry.is_dir() else {name: entry.read_bytes()}
    return found


TEMPLATES = {name: source.decode() for name, source in _within(files("mergeyard.web").joinpath("templates")).items()}
STATIC = _within(files("mergeyard.web").joinpath("static"))
FINGERPRINTS = {name: sha256(content).hexdigest()[:12] for name, content in STATIC.items()}
