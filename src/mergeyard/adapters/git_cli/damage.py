"""Understands from git's own words what is wrong with a mirror itself, and not merely with what was asked of it."""

import re

# Paths are bounded, because without a bound words that only begin such a sentence take quadratic time.
DAMAGE = re.compile(
    r"not a git repository|bad config|unknown repository extension|expected git repo version"
    r"|object file .{0,300} is empty|is corrupt|object corrupt|corrupt (?:loose )?object|garbage at end of|inflate"
    r"|packfile .{0,300} (?:is|does|cannot|claims|truncated|invalid)|pack is corrupted"
    r"|index file .{0,300} (?:is|corrupt)|non-monotonic index|bad (?:packed object|object header|tree object)"
    r"|missing (?:object|commit|tree|blob) [0-9a-f]|broken link|could not read [0-9a-f]{40}|failed to read object"
    r"|unable to (?:read tree|find [0-9a-f]{40}|read [0-9a-f]{40}|unpack [0-9a-f]{40})|failed to traverse parents"
    r"|(?:bad|invalid) object|invalid sha1 pointer|reference broken|bad ref\b|does not point to a valid",
    re.IGNORECASE,
)
LEFTOVERS = re.compile(
    r"\.lock': file exists|no space left|disk quota|unable to (?:create temporary|write)|index-pack", re.IGNORECASE
)
OTHERS_WORDS = ("remote:", "error in ", "warning in ")
"""What the other side says about itself, and what git's check finds strange in objects that always were like that."""


def speaks_of_damage(words: str) -> bool:
    return bool(DAMAGE.search(_about_the_mirror(words)))


def speaks_of_leftovers(words: str) -> bool:
    """Of locks that somebody may have left, or of a disk that halves of packs may have filled."""
    return bool(LEFTOVERS.search(_about_the_mirror(words)))


def _about_the_mirror(words: str) -> str:
    return "\n".join(line for line in words.splitlines() if not line.startswith(OTHERS_WORDS))
