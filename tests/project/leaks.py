"""Finds texts that look like a secret: keys and tokens by their form, and random values named like a secret."""

import re
from collections import Counter
from collections.abc import Iterator
from math import log2

from msgspec import Struct

from mergeyard.service.tokens import SECRET_PATTERN, is_well_formed

FORMS = {
    "private key": r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----\s+[A-Za-z0-9+/=]{16}",
    "GitHub token": r"gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,}",
    "GitLab token": r"gl(?:pat|dt|rt|cbt|ptt|soat|ft|imt|agent|oas)-[\w-]{20,}",
    "AWS key": r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b",
    "Slack token": r"xox[abeoprs]-[\w-]{16,}|hooks\.slack\.com/services/T\w{6,}/B\w{6,}/\w{16,}",
    "Google key": r"AIza[\w-]{35}",
    "npm token": r"npm_[A-Za-z0-9]{36}\b",
    "PyPI token": r"pypi-AgEI[\w-]{50,}",
    "signed token": r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{20,}",
    "webhook secret": r"whsec_[A-Za-z0-9+/]{24,}=*",
    "password in a URL": r"://[\w.-]{0,40}:[^\s:@/$<>{}\"'`]{8,80}@",
}
MERGEYARD_TOKEN = re.compile(SECRET_PATTERN.pattern.decode())
NAMED_AS_SECRET = re.compile(
    r"(?i)(?:secret|token|passw(?:or)?d|api_?key|private_?key|credential)[\w-]{0,40}[\"']?\s{0,20}(?:=|:|=>)\s{0,20}[fbr]?[\"']"
    r"([\w+/=.~-]{20,200})[\"']"
)
MIN_RANDOM_BITS = 3.9
"""Entropy per character: words and names have less."""


class Leak(Struct, frozen=True, order=True):
    kind: str
    text: str


def leaks(text: str) -> Iterator[Leak]:
    for kind, form in FORMS.items():
        yield from (Leak(kind, found[0]) for found in re.finditer(form, text))
    yield from (
        Leak("Mergeyard token", token) for token in MERGEYARD_TOKEN.findall(text) if is_well_formed(token.encode())
    )
    yield from (
        Leak("random value named as a secret", value) for value in NAMED_AS_SECRET.findall(text) if is_random(value)
    )


def is_random(value: str) -> bool:
    """Contains digits and letters, with the entropy of a random text."""
    mixed = any(each.isdigit() for each in value) and any(each.isalpha() for each in value)
    return mixed and bits_per_character(value) >= MIN_RANDOM_BITS


def bits_per_character(value: str) -> float:
    shares = [count / len(value) for count in Counter(value).values()]
    return -sum(share * log2(share) for share in shares)
