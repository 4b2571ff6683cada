"""Browser sessions: sign-in with a token or an identity provider, lookup, and sign-out."""

from collections.abc import Mapping
from hashlib import sha256

import structlog
from msgspec import Struct

from mergeyard.domain.access import Grants, Scope, Session, SsoPrincipal, Token
from mergeyard.domain.journal import RESERVED_ACTORS, SignedIn, SsoSessionsEnded
from mergeyard.domain.timestamps import HOUR, later
from mergeyard.ports.external import AuthorizationRedirect, Clock, IdentityProvider, SsoLoginRefused
from mergeyard.ports.store import Store
from mergeyard.ports.writes import DeleteExpiredSessions, DeleteSession, DeleteSsoSessions, SaveSession
from mergeyard.service.audit_log import ACTOR_TOKEN_SEPARATOR, audit_entry, encode_actor
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.tokens import Tokens, generate_secret, hash_secret, is_well_formed

log = structlog.get_logger()

SESSION_LIFETIME_MS = 12 * HOUR
DELETE_EXPIRED_INTERVAL_MS = HOUR
NO_READ_SCOPE_MESSAGE = (
    "This token cannot read anything: it lacks the scope “read”. Sign in with a token that has it, or ask your "
    "administrator for one."
)


class Sessions:
    def __init__(self, store: Store, clock: Clock, tokens: Tokens, grants: Grants) -> None:
        self._store = store
        self._clock = clock
        self._tokens = tokens
        self._grants = grants

    async def sign_in(self, token_secret: bytes) -> str | None:
        """The session secret for the browser; None when the token is unknown, revoked or expired."""
        token = await self._tokens.find_valid(token_secret)
        if token is None:
            return None
        if not token.has_scope(Scope.READ):
            raise RequestRefused(Code.INSUFFICIENT_SCOPE, NO_READ_SCOPE_MESSAGE)
        secret, session = self._new_session(token.id)
        await self._save(secret, session, token)
        log.info("signed_in", name=token.name, token_id=token.id, by="token")
        return secret

    async def sign_in_with_sso(self, name: str, groups: frozenset[str], subject: str = "") -> str | None:
        """For a user that the identity provider authenticated; None when no scope is granted to the user's groups."""
        secret, session = self._new_session(None, name, groups & self._grants.group_scopes.keys(), subject)
        principal = self._to_principal(session)
        return None if principal is None else await self._save(secret, session, principal)

    async def find_user(self, secret: bytes) -> Token | None:
        """The signed-in user with the scopes that apply now; None when the session or its token is no longer valid, or
        no scope is granted any longer."""
        session = await self._store.session(hash_secret(secret)) if is_well_formed(secret) else None
        now = self._clock.now()
        if session is None or not session.is_valid(now):
            return None
        if session.token is None:
            return self._to_principal(session)
        token = await self._store.token_by_id(session.token)
        return token if token is not None and token.is_valid(now) else None

    async def sign_out(self, secret: bytes) -> None:
        user = await self.find_user(secret)
        await self._store.commit(DeleteSession(hash_secret(secret)))
        if user is not None:
            log.info("signed_out", name=user.name)

    async def end_sso_sessions(self, provider: str, requested_by: Token) -> None:
        """Ends all sessions that were started through the identity provider."""
        action = SsoSessionsEnded(at=self._clock.now(), actor=encode_actor(requested_by), id="", name=provider)
        await self._store.commit(DeleteSsoSessions(), audit_entry(action))

    async def delete_expired(self) -> None:
        await self._store.commit(DeleteExpiredSessions(self._clock.now()))

    def _new_session(
        self, token: str | None, name: str = "", groups: frozenset[str] = frozenset(), subject: str = ""
    ) -> tuple[str, Session]:
        secret, now = generate_secret(), self._clock.now()
        return secret, Session(
            digest=hash_secret(secret.encode()),
            token=token,
            name=name,
            subject=subject,
            groups=groups,
            created_at=now,
            expires_at=later(now, SESSION_LIFETIME_MS),
        )

    async def _save(self, secret: str, session: Session, user: Token) -> str:
        signed_in = SignedIn(
            at=session.created_at, actor=encode_actor(user), id=user.id, name=user.name, detail=session.subject
        )
        await self._store.commit(SaveSession(session), audit_entry(signed_in))
        return secret

    def _to_principal(self, session: Session) -> Token | None:
        """With the scopes that the settings grant now, not those at sign-in."""
        scopes = self._grants.scopes_for(session.groups)
        if not scopes:
            return None
        return SsoPrincipal(
            id=session.digest.hex()[:12],
            name=session.name,
            digest=session.digest,
            scopes=scopes,
            created_at=session.created_at,
        )


MAX_NAME_CHARS = 100
SUBJECT_DIGITS = 8
NO_ACCESS_MESSAGE = (
    "None of your groups has access to Mergeyard. Ask your administrator to grant access to one of your groups."
)


class SsoSession(Struct, frozen=True):
    name: str
    session_secret: str
    """The session secret, for the browser's cookie."""
    return_to: str
    """The page that the user opened before signing in."""


class SingleSignOn:
    def __init__(self, label: str, identity_provider: IdentityProvider, sessions: Sessions) -> None:
        """`label` is the name of the identity provider on the sign-in page."""
        self.label = label
        self._identity_provider = identity_provider
        self._sessions = sessions

    async def begin_login(self, return_to: str) -> AuthorizationRedirect:
        return await self._identity_provider.begin_login(return_to)

    async def complete_login(self, parameters: Mapping[str, str], login_state: str) -> SsoSession:
        """`parameters` are those with which the identity provider redirected the browser back."""
        login = await self._identity_provider.complete_login(parameters, login_state)
        user = login.person
        name = qualify_name(to_journal_name(user.name), user.subject)
        secret = await self._sessions.sign_in_with_sso(name, user.groups, user.subject)
        if secret is None:
            raise SsoLoginRefused(NO_ACCESS_MESSAGE)
        return SsoSession(name, secret, login.return_to)


def qualify_name(name: str, subject: str) -> str:
    """`ada (3f2a9c1b)`: the digits are a hash of issuer and `sub`, so two users with one name can be told apart."""
    return f"{name} ({sha256(subject.encode()).hexdigest()[:SUBJECT_DIGITS]})"


def to_journal_name(name: str) -> str:
    """One line of printable characters, without the separator between a name and an id, and not a reserved name."""
    printable = "".join(each if each.isprintable() else " " for each in name.replace(ACTOR_TOKEN_SEPARATOR, "-"))
    clean = " ".join(printable.split())[:MAX_NAME_CHARS] or "unknown"
    return f"{clean} (a person)" if clean.casefold() in RESERVED_ACTORS else clean
