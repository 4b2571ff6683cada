"""Signs people in to the pages, finds who a session belongs to, and signs them out."""

from mergeyard.domain.instants import HOUR, later
from mergeyard.domain.journal import SignedIn, SignedOut
from mergeyard.domain.sessions import Grants, Session
from mergeyard.domain.tokens import Scope, Token, VouchedFor
from mergeyard.ports.clock import Clock
from mergeyard.ports.store import Store
from mergeyard.ports.writes import DropSession, DropVouchedFor, ForgetSessions, SaveSession
from mergeyard.service import secrets
from mergeyard.service.errors import Code, Refused
from mergeyard.service.journaling import actor_of, noted
from mergeyard.service.tokens import Tokens

LASTING = 12 * HOUR
FORGET_EVERY = HOUR
MAY_NOT_LOOK = (
    "This token may not look at anything: it lacks the scope “read”. Sign in with one that has it, or ask for one."
)


class Sessions:
    def __init__(self, store: Store, clock: Clock, tokens: Tokens, grants: Grants) -> None:
        self._store = store
        self._clock = clock
        self._tokens = tokens
        self._grants = grants

    async def sign_in(self, token_secret: bytes) -> str | None:
        """What the browser is to keep; None when nobody has this token."""
        token = await self._tokens.holder(token_secret)
        if token is None:
            return None
        if not token.may(Scope.READ):
            raise Refused(Code.INSUFFICIENT_SCOPE, MAY_NOT_LOOK)
        secret, session = self._new(token.id)
        return await self._begin(secret, session, token)

    async def vouch(self, name: str, groups: frozenset[str], subject: str = "") -> str | None:
        """For somebody whom a provider of identities knows; None when nothing is granted to them."""
        secret, session = self._new(None, name, groups & self._grants.to_groups.keys(), subject)
        person = self._vouched_for(session)
        return None if person is None else await self._begin(secret, session, person)

    async def holder(self, secret: bytes) -> Token | None:
        """Who is signed in, with what they may do now; None when the session, or what it stands upon, has ended."""
        session = await self._store.session(secrets.digest(secret)) if secrets.well_formed(secret) else None
        now = self._clock.now()
        if session is None or not session.valid(now):
            return None
        if session.token is None:
            return self._vouched_for(session)
        token = await self._store.token_of_id(session.token)
        return token if token is not None and token.valid(now) else None

    async def sign_out(self, secret: bytes) -> None:
        await self._store.commit(DropSession(secrets.digest(secret)))

    async def sign_out_vouched_for(self, by: str, asker: Token) -> None:
        """Everybody who came by this provider, and so without a token."""
        deed = SignedOut(at=self._clock.now(), actor=actor_of(asker), id="", name=by)
        await self._store.commit(DropVouchedFor(), noted(deed))

    async def forget_ended(self) -> None:
        await self._store.commit(ForgetSessions(self._clock.now()))

    def _new(
        self, token: str | None, name: str = "", groups: frozenset[str] = frozenset(), subject: str = ""
    ) -> tuple[str, Session]:
        secret, now = secrets.new_secret(), self._clock.now()
        digest = secrets.digest(secret.encode())
        expires_at = later(now, LASTING)
        return secret, Session(
            digest=digest,
            token=token,
            name=name,
            subject=subject,
            groups=groups,
            created_at=now,
            expires_at=expires_at,
        )

    async def _begin(self, secret: str, session: Session, who: Token) -> str:
        signed_in = SignedIn(
            at=session.created_at, actor=actor_of(who), id=who.id, name=who.name, words=session.subject
        )
        await self._store.commit(SaveSession(session), noted(signed_in))
        return secret

    def _vouched_for(self, session: Session) -> Token | None:
        """With what is granted now, whatever it was when they came."""
        scopes = self._grants.of(session.groups)
        if not scopes:
            return None
        return VouchedFor(
            id=session.digest.hex()[:12],
            name=session.name,
            digest=session.digest,
            scopes=scopes,
            created_at=session.created_at,
        )
