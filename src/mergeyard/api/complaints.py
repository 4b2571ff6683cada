"""Says in a person's words, and with a JSON pointer, what a check of types complains about."""

import re

A_COMPLAINT = re.compile(r"(?P<message>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?", re.DOTALL)
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
    match = A_COMPLAINT.fullmatch(complaint)
    message, path = (match["message"], match["path"]) if match else (complaint, None)
    pointer = _pointer(path or "")
    if missing := MISSING.fullmatch(message):
        return f"{pointer}/{escaped(missing['name'])}", "is required"
    return pointer, _in_words(message)


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
    return message
