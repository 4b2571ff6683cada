"""Reads off a provider's claims who somebody is, and which groups they are in."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from mergeyard.adapters.oidc.registration import Registration
from mergeyard.ports.identity import IdentityTrouble, NotVouchedFor, Person

NAMELESS = "The identity provider does not say who you are. Tell your administrator: the log says what is missing."
UNVERIFIED = "The identity provider has not verified your e-mail address. Verify it there, then begin again."

EMAIL = "email"
YES = (True, "true")
"""Some providers write it as a word."""

Claims = Mapping[str, Any]
Sources = Sequence[Claims]
"""What a provider says of one person in several places, the first of which counts most."""


def person_in(sources: Sources, registration: Registration) -> Person:
    name = told(sources, registration.name_claim)
    if not isinstance(name, str) or not name.strip():
        there = ", ".join(sorted({claim for claims in sources for claim in claims}))[:300]
        raise IdentityTrouble(NAMELESS, f"there is no claim {registration.name_claim!r} among {there}: set name_claim")
    if registration.name_claim == EMAIL and not verified(sources, name):
        raise NotVouchedFor(UNVERIFIED)
    subject = sources[0].get("sub")
    if not isinstance(subject, str) or not subject:
        raise IdentityTrouble(NAMELESS, "there is no claim 'sub' in the ID token, which every provider must send")
    return Person(name, groups_in(told(sources, registration.groups_claim)), f"{registration.issuer} {subject}")


def complete(claims: Claims, registration: Registration) -> bool:
    """Whether nothing more need be asked."""
    name = found(claims, registration.name_claim)
    proven = registration.name_claim != EMAIL or verified([claims], name)
    return bool(name and proven and found(claims, registration.groups_claim))


def told(sources: Sources, path: str) -> object:
    """What is empty in one place may be told in the next."""
    return next((claim for claims in sources if (claim := found(claims, path))), None)


def verified(sources: Sources, address: object) -> bool:
    return any(claims.get(EMAIL) == address and claims.get("email_verified") in YES for claims in sources)


def found(claims: Claims, path: str) -> object:
    """By its name, or by the way to it: `realm_access.roles`."""
    if path in claims:
        return claims[path]
    inside: object = claims
    for step in path.split("."):
        inside = cast(Claims, inside).get(step) if isinstance(inside, dict) else None
    return inside


def groups_in(claim: object) -> frozenset[str]:
    if isinstance(claim, str):
        return frozenset({claim})
    many = cast(list[object], claim) if isinstance(claim, list) else []
    return frozenset(each for each in many if isinstance(each, str))
