"""Who may do what, and who is signed in."""

from collections.abc import Callable

from msgspec.structs import replace

from mergeyard.domain.sessions import Session
from mergeyard.domain.tokens import Token
from mergeyard.ports.writes import RecordTokenUse


class People:
    def __init__(self) -> None:
        self.tokens: dict[str, Token] = {}
        self.sessions: dict[bytes, Session] = {}
        self._of_digest: dict[bytes, str] = {}

    def save_token(self, token: Token) -> None:
        before = self.tokens.get(token.id)
        if before is not None:
            del self._of_digest[before.digest]
            token = replace(token, last_used_at=before.last_used_at, last_used_from=before.last_used_from)
        self.tokens[token.id] = token
        self._of_digest[token.digest] = token.id

    def record_use(self, use: RecordTokenUse) -> None:
        token = self.tokens.get(use.id)
        if token is not None and (token.last_used_at is None or token.last_used_at < use.at):
            self.tokens[use.id] = replace(token, last_used_at=use.at, last_used_from=use.address)

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
