"""A web client for the pages, like a browser without scripts: signs in, reads pages, sends forms.

async with a_signed_in_client(scenario, Scope.SUBMIT) as client:
    page = await client.get("/")
    assert page.title == "Queues · Mergeyard"
    assert page.one("h1").text == "Queues"
    response = await client.post("/queues/git.local/acme/app:main/submit", number=1)
    assert response.location == "/queues/git.local/acme/app:main"
"""

import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from typing import Self

import httpx2
from httpx2 import ASGITransport
from starlette.applications import Starlette

from mergeyard.api.app import build_app
from mergeyard.domain.access import Scope
from mergeyard.domain.ids import Repo
from mergeyard.service.service import Service
from mergeyard.service.sessions import SingleSignOn
from mergeyard.web import user_sessions
from mergeyard.web.app import WebApp
from tests.support.scenario import Scenario

VOID_TAGS = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "use", "wbr"}
INVISIBLE_TAGS = {"script", "style", "template", "title"}
Field = str | int | list[str]
BROWSER_HEADERS = {"accept": "text/html,*/*;q=0.8"}
"""Without them the server answers errors in JSON."""


class Element:
    """An element of a page: `element["href"]` is an attribute, "" if it does not exist."""

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.children: list[Element | str] = []

    def __getitem__(self, attribute: str) -> str:
        return self.attributes.get(attribute, "")

    @property
    def classes(self) -> list[str]:
        return self["class"].split()

    @property
    def text(self) -> str:
        """The visible text, with all white space collapsed."""
        return " ".join("".join(self._texts()).split())

    def descendants(self) -> Iterator["Element"]:
        for part in self.children:
            if isinstance(part, Element):
                yield part
                yield from part.descendants()

    def all(self, selector: str) -> list["Element"]:
        """Selectors: `tag`, `.class`, `#id`, `[attribute=value]`, or several of these joined."""
        return [element for element in self.descendants() if element.matches(selector)]

    def one(self, selector: str) -> "Element":
        found = self.all(selector)
        assert len(found) == 1, f"{len(found)} elements match {selector}"
        return found[0]

    def matches(self, selector: str) -> bool:
        return all(self._matches_part(part) for part in re.findall(r"^[\w-]+|[.#][\w-]+|\[[^]]+\]", selector))

    def _matches_part(self, part: str) -> bool:
        if part.startswith("."):
            return part[1:] in self.classes
        if part.startswith("#"):
            return self["id"] == part[1:]
        if part.startswith("["):
            name, equals, value = part[1:-1].partition("=")
            return name in self.attributes and (not equals or self[name] == value.strip("\"'"))
        return self.tag == part

    def _texts(self) -> Iterator[str]:
        for part in self.children:
            if isinstance(part, str):
                yield part
            elif part.tag not in INVISIBLE_TAGS:
                yield from part._texts()
                yield "" if part.tag in {"a", "b", "bdi", "code", "em", "span", "strong", "time"} else " "


class PageParser(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.root = Element("", {})
        self._open = [self.root]
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)
        if tag not in VOID_TAGS:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> ends <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


class Page:
    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self.location = response.headers.get("location", "")
        self.headers = response.headers
        self.html = response.text
        self.root = (
            PageParser(response.text).root if "html" in response.headers.get("content-type", "") else Element("", {})
        )

    @property
    def title(self) -> str:
        return "".join(str(part) for part in self.one("title").children)

    @property
    def text(self) -> str:
        return self.root.text

    def all(self, selector: str) -> list[Element]:
        return self.root.all(selector)

    def one(self, selector: str) -> Element:
        return self.root.one(selector)

    def links(self) -> list[str]:
        return [link["href"] for link in self.all("a[href]")]


class WebClient:
    """`get` and `post` return the response itself and do not follow redirects."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def sign_in(self, secret: str) -> Self:
        page = await self.post("/sign-in", token=secret, next="/")
        assert page.status == 303, page.text
        return self

    async def get(self, path: str, **headers: str) -> Page:
        return Page(await self._client.get(path, headers=headers))

    async def post(self, path: str, **fields: Field) -> Page:
        """Adds the CSRF token unless `csrf` is given."""
        return await self.send(path, {}, **fields)

    async def post_htmx(self, path: str, **fields: Field) -> Page:
        """A request as htmx sends it: the response is a part of the page."""
        return await self.send(path, {"hx-request": "true"}, **fields)

    async def send(self, path: str, headers: dict[str, str], **fields: Field) -> Page:
        return Page(await self._client.post(path, data=self._with_csrf(fields), headers=headers))

    @property
    def csrf(self) -> str:
        secret = self._client.cookies.get(user_sessions.SESSION_COOKIE)
        return "" if secret is None else user_sessions.derive_csrf_token(secret.encode())

    def _with_csrf(self, fields: dict[str, Field]) -> dict[str, Field]:
        return {user_sessions.CSRF_FIELD: self.csrf, **fields}


def build_pages(service: Service, sso: SingleSignOn | None = None, *, over_tls: bool = False) -> Starlette:
    """The application with the pages only."""
    return build_app((), WebApp(service, sso, over_tls=over_tls))


def a_browser(application: Starlette, base_url: str = "http://yard.example") -> httpx2.AsyncClient:
    transport = ASGITransport(application, raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url=base_url, headers=BROWSER_HEADERS)


@asynccontextmanager
async def an_anonymous_client(service: Service) -> AsyncGenerator[WebClient]:
    """A client that is not signed in."""
    async with a_browser(build_pages(service)) as client:
        yield WebClient(client)


@asynccontextmanager
async def a_signed_in_client(
    scenario: Scenario, *scopes: Scope, repos: tuple[Repo, ...] = (), name: str = "ada"
) -> AsyncGenerator[WebClient]:
    """A client that is signed in with the scope `read` and these scopes."""
    _, secret = await scenario.service.tokens.create(name, {Scope.READ, *scopes}, repos)
    async with an_anonymous_client(scenario.service) as client:
        yield await client.sign_in(secret)
