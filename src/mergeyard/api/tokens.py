"""The endpoints about API tokens."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from mergeyard import __version__
from mergeyard.api import fields, request_schemas
from mergeyard.api.endpoint import Call, Endpoints
from mergeyard.api.presenting import encode, format_optional_time
from mergeyard.api.request_schemas import Repository, Request, describe, describe_with_schema
from mergeyard.api.response_schemas import ResponseBody, Timestamp
from mergeyard.api.responses import invalid_request
from mergeyard.domain.access import DEFAULT_SCOPES, Scope, Token
from mergeyard.service.errors import Code, RequestRefused

TokenName = Annotated[
    str,
    describe_with_schema(
        "Who uses the token; the audit log shows this name.",
        {"type": "string", "minLength": 1, "maxLength": 100, "pattern": r"^[^\s#\u0000-\u001f][^#\u0000-\u001f]*$"},
    ),
]


class GetCurrentToken(Request, frozen=True, kw_only=True):
    pass


class ListTokens(Request, frozen=True, kw_only=True):
    pass


class CreateToken(Request, frozen=True, kw_only=True):
    name: TokenName
    scopes: (
        Annotated[
            list[Scope],
            Meta(min_length=1, max_length=20, description="What it can do; default: `read`, `submit` and `targets`."),
        ]
        | UnsetType
    ) = UNSET
    repositories: (
        Annotated[
            list[Repository],
            Meta(max_length=100, description="The repositories it is limited to; default: it is not limited."),
        ]
        | UnsetType
    ) = UNSET
    expires_at: Annotated[request_schemas.Time, describe("When it expires; default: never.")] | UnsetType = UNSET


class RevokeToken(Request, frozen=True, kw_only=True):
    id: Annotated[str, Meta(min_length=1, max_length=100, description="Id of the token.")]


class CurrentToken(ResponseBody, frozen=True, kw_only=True):
    """The token that sent the request."""

    id: Annotated[str, describe("Id of the token.")]
    name: Annotated[str, describe("Name of the token.")]
    scopes: Annotated[tuple[Scope, ...], describe("What it can do.")]
    repositories: Annotated[tuple[Repository, ...], describe("The repositories it is limited to; empty means all.")]
    expires_at: Annotated[Timestamp | None, describe("When it expires; null: never.")]
    server_version: Annotated[str, describe("Version of Mergeyard on the server.")]


class ApiToken(ResponseBody, frozen=True, kw_only=True):
    """A token. It is valid if it is not revoked and not expired."""

    id: Annotated[str, describe("Id of the token.")]
    name: Annotated[str, describe("Who uses it.")]
    scopes: Annotated[tuple[Scope, ...], describe("What it can do.")]
    repositories: Annotated[tuple[Repository, ...], describe("The repositories it is limited to; empty means all.")]
    created_at: Annotated[Timestamp, describe("When it was created.")]
    expires_at: Annotated[Timestamp | None, describe("When it expires; null: never.")]
    revoked_at: Annotated[Timestamp | None, describe("When it was revoked; null: it is not revoked.")]
    last_used_at: Annotated[Timestamp | None, describe("Recorded at most once per hour; null when it was never used.")]
    last_used_from: Annotated[str | None, describe("The client's address at that time.")]
    secret: (
        Annotated[str, describe("The value of `x-api-token`; only in the first response of `createToken`.")] | UnsetType
    ) = UNSET


class ApiTokens(ResponseBody, frozen=True, kw_only=True):
    tokens: Annotated[tuple[ApiToken, ...], describe("Newest first, with those that are revoked or expired.")]


class TokenEndpoints(Endpoints):
    async def get_current(self, call: Call) -> bytes:
        token = call.token
        return encode(
            CurrentToken(
                id=token.id,
                name=token.name,
                scopes=tuple(sorted(token.scopes)),
                repositories=_present_repos(token),
                expires_at=format_optional_time(token.expires_at),
                server_version=__version__,
            )
        )

    async def create(self, call: Call) -> bytes:
        """The stored response of an idempotent request has no secret: a repeated request does not get it again."""
        request: CreateToken = call.request
        expires_at = None if isinstance(request.expires_at, UnsetType) else request.expires_at
        if expires_at is not None and expires_at <= self._service.clock.now():
            raise invalid_request("/expiresAt", "expected a time in the future")
        token, secret = await self._service.tokens.create(
            request.name,
            DEFAULT_SCOPES if isinstance(request.scopes, UnsetType) else request.scopes,
            {self._resolve_repo(call, each.repo) for each in request.repositories or ()},
            created_by=call.token,
            expires_at=expires_at,
            idempotent_request=call.idempotent_request,
            render=_encode_token,
        )
        return encode(replace(present_token(token), secret=secret))

    async def list(self, call: Call) -> bytes:
        tokens = await self._service.tokens.list_manageable(call.token)
        return encode(ApiTokens(tokens=tuple(map(present_token, tokens))))

    async def revoke(self, call: Call) -> bytes:
        request: RevokeToken = call.request
        revoked = await self._service.tokens.revoke(
            request.id, call.token, idempotent_request=call.idempotent_request, render=_encode_token
        )
        if revoked is None:
            detail = f"There is no token with the id {request.id}: look it up in the list of tokens."
            raise RequestRefused(Code.TOKEN_NOT_FOUND, detail)
        return _encode_token(revoked)


def present_token(token: Token) -> ApiToken:
    return ApiToken(
        id=token.id,
        name=token.name,
        scopes=tuple(sorted(token.scopes)),
        repositories=_present_repos(token),
        created_at=fields.format_time(token.created_at),
        expires_at=format_optional_time(token.expires_at),
        revoked_at=format_optional_time(token.revoked_at),
        last_used_at=format_optional_time(token.last_used_at),
        last_used_from=token.last_used_from or None,
    )


def _encode_token(token: Token) -> bytes:
    return encode(present_token(token))


def _present_repos(token: Token) -> tuple[Repository, ...]:
    return tuple(map(Repository.from_repo, sorted(token.repos, key=str)))
