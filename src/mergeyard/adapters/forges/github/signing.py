"""Signs for an app of GitHub: a short-lived word that it is really the app that speaks."""

import jwt

from mergeyard.adapters.forges.access import App
from mergeyard.domain.instants import SECOND, Instant
from mergeyard.ports.host import HostTrouble

BACKDATED = 60
"""Seconds, for clocks that are not quite in step."""
GOOD_FOR = 540
"""Seconds; GitHub takes nothing that is good for more than ten minutes."""


def signed(app: App, now: Instant) -> str:
    seconds = now // SECOND
    claims = {"iat": seconds - BACKDATED, "exp": seconds + GOOD_FOR - BACKDATED, "iss": app.id}
    try:
        return jwt.encode(claims, app.private_key, algorithm="RS256")
    except (ValueError, TypeError, jwt.PyJWTError) as error:
        words = "is no RSA key in PEM form: use the file that GitHub gave when the key was made"
        raise HostTrouble(f"the private key of app {app.id} {words}") from error
