"""Says in a person's words, and with a JSON pointer, what a check of types complains about."""

import re

A_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
MISSING = re.compile(r"Object missing required field `(?P<name>.+)`")
MISTYPED = re.compile(r"Expected `(?P<expected>[^`]+)`, got `(?P<got>[^`]+)`")
OUT_OF_RANGE = re.compile(r"Expected `(?P<what>\w+)` (?P<of_length>of length )?(?P<sign>[<>]=) (?P<bound>\d+)")
THINGS = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
PARTS = {"str": "character", "array": "item"}


def translated(complaint: str) -> tuple[str, str]:
    """Pointer and message."""
    message, path = _split(complaint)
    pointer = _pointer(path)
    if missing := MISSING.fullmatch(message):
        return f"{pointer}/{escaped(missing['name'])}", "is required"
    return pointer, _in_words(message)


def _split(complaint: str) -> tuple[str, str]:
    """The message, and the path after it, as in ``Expected `int`, got `str` - at `$.pr.number` ``."""
    message, _, place = complaint.rpartition(" - at `")
    path = place.removeprefix("key in ")
    return (message, path[1:-1]) if path.startswith("$") and path.endswith("`") else (complaint, "")


def escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _pointer(path: str) -> str:
    return "".join(f"/{escaped(name or index)}" for name, index in A_STEP.findall(path))


def _in_words(message: str) -> str:
    if mistyped := MISTYPED.fullmatch(message):
        if mistyped["got"] == "null":
            return "must not be null"
        expected = " or ".join(THINGS.get(part, part) for part in mistyped["expected"].split(" | "))
        return f"expected {expected}, got {THINGS.get(mistyped['got'], mistyped['got'])}"
    if out := OUT_OF_RANGE.fullmatch(message):
        bound = "at least" if out["sign"] == ">=" else "at most"
        if out["of_length"]:
            return f"expected {bound} {out['bound']} {PARTS.get(out['what'], 'part')}(s)"
        return f"expected an integer of {bound} {out['bound']}"
    if message.startswith("Expected `str` matching regex"):
        return "expected an address that begins with http:// or https://"
    return message
