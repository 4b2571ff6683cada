"""Lets people in whom a provider of identities vouches for, with what their groups may do."""

from collections.abc import Mapping
from hashlib import sha256

from msgspec import Struct

from mergeyard.domain.journal import RESERVED
from mergeyard.ports.identity import Departure, Identities, NotVouchedFor
from mergeyard.service.journaling import SEPARATOR
from mergeyard.service.sessions import Sessions

LONGEST_NAME = 100
SUBJECT_DIGITS = 8
NO_GROUP = "You are known, but none of your groups may come in here. Ask your administrator to let one of them in."


class Welcome(Struct, frozen=True):
    name: str
    secret: str
    """What the browser is to keep."""
    there: str


class Vouching:
    def __init__(self, label: str, identities: Identities, sessions: Sessions) -> None:
        """`label` is what people call the provider."""
        self.label = label
        self._identities = identities
        self._sessions = sessions

    async def send_away(self, there: str) -> Departure:
        return await self._identities.departure(there)

    async def take_in(self, answer: Mapping[str, str], luggage: str) -> Welcome:
        arrival = await self._identities.arrival(answer, luggage)
        person = arrival.person
        name = qualify(fit_for_the_journal(person.name), person.subject)
        secret = await self._sessions.vouch(name, person.groups, person.subject)
        if secret is None:
            raise NotVouchedFor(NO_GROUP)
        return Welcome(name, secret, arrival.there)


def qualify(name: str, subject: str) -> str:
    """`ada (3f2a9c1b)`: the digits follow from issuer and `sub`, so two people with one name can be told apart."""
    return f"{name} ({sha256(subject.encode()).hexdigest()[:SUBJECT_DIGITS]})"


def fit_for_the_journal(name: str) -> str:
    """One line of visible characters, without the one that parts a name from an id, and not one that we go by."""
    visible = "".join(each if each.isprintable() else " " for each in name.replace(SEPARATOR, "-"))
    fit = " ".join(visible.split())[:LONGEST_NAME] or "somebody"
    return f"{fit} (a person)" if fit.casefold() in RESERVED else fit
