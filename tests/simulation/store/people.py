"""Who may do what, and who is signed in."""

from collections.abc import Callable

from mergeyard.domain.sessions import Session
from mergeyard.domain.tokens import Token


class People:
    def __init__(self) -> None:
        self.tokens: dict[str, Token] = {}
        self.sessions: dict[bytes, Session] = {}
        self._of_digest: dict[bytes, str] = {}

    def save_token(self, token: Token) -> None:
        before = self.tokens.get(token.id)
        if before is not None:
            del self._of_digest[before.digest]
        self.tokens[token.id] = token
        self._of_digest[token.digest] = token.id

    def token(self, digest: bytes) -> Token | None:
        found = self._of_digest.get(digest)
        return None if found is None else self.tokens[found]

    def oldest_tokens(self) -> tuple[Token, ...]:
        return tuple(sorted(self.tokens.values(), key=lambda token: (token.created_at, token.id)))

    def save_session(self, session: Session) -> None:
        self.sessions[session.digest] = session

    def drop_session(self, digest: bytes) -> None:
        self.sessions.pop(digest, None)

    def keep_sessions(self, that: Callable[[Session], bool]) -> None:
        self.sessions = {digest: session for digest, session in self.sessions.items() if that(session)}
