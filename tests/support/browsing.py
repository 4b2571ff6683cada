"""Visits the pages as a browser without scripts does: signs in, reads, fills in forms.

async with a_visitor(scenario, Scope.SUBMIT) as visitor:
    page = await visitor.get("/")
    assert page.title == "Queues · Mergeyard"
    assert page.one("h1").text == "Queues"
    answer = await visitor.post("/queues/git.local/acme/app:main/submit", number=1)
    assert answer.location == "/queues/git.local/acme/app:main"
"""

import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from typing import Self

import httpx
from httpx import ASGITransport

from mergeyard.domain.repositories import Repo
from mergeyard.domain.tokens import Scope
from mergeyard.service.service import Service
from mergeyard.web import visiting
from mergeyard.web.app import application
from tests.support.scenario import Scenario

VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "use", "wbr"}
UNSEEN = {"script", "style", "template", "title"}
Field = str | int | list[str]


class Element:
    """A tag of a page: `element["href"]` is an attribute, "" when it has none of this name."""

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.parts: list[Element | str] = []

    def __getitem__(self, attribute: str) -> str:
        return self.attributes.get(attribute, "")

    @property
    def classes(self) -> list[str]:
        return self["class"].split()

    @property
    def text(self) -> str:
        """What is read here, with every gap as one blank."""
        return " ".join("".join(self._texts()).split())

    def everything(self) -> Iterator["Element"]:
        for part in self.parts:
            if isinstance(part, Element):
                yield part
                yield from part.everything()

    def all(self, selector: str) -> list["Element"]:
        """Of the form `tag`, `.class`, `#id`, `[attribute=value]`, or several of these joined."""
        return [element for element in self.everything() if element.matches(selector)]

    def one(self, selector: str) -> "Element":
        found = self.all(selector)
        assert len(found) == 1, f"{len(found)} elements are {selector}"
        return found[0]

    def matches(self, selector: str) -> bool:
        return all(self._is(part) for part in re.findall(r"^[\w-]+|[.#][\w-]+|\[[^]]+\]", selector))

    def _is(self, part: str) -> bool:
        if part.startswith("."):
            return part[1:] in self.classes
        if part.startswith("#"):
            return self["id"] == part[1:]
        if part.startswith("["):
            name, given, value = part[1:-1].partition("=")
            return name in self.attributes and (not given or self[name] == value.strip("\"'"))
        return self.tag == part

    def _texts(self) -> Iterator[str]:
        for part in self.parts:
            if isinstance(part, str):
                yield part
            elif part.tag not in UNSEEN:
                yield from part._texts()
                yield "" if part.tag in {"a", "b", "bdi", "code", "em", "span", "strong", "time"} else " "


class Reading(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.root = Element("", {})
        self._open = [self.root]
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].parts.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].parts.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> ends <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].parts.append(data)


class Page:
    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.location = response.headers.get("location", "")
        self.headers = response.headers
        self.html = response.text
        self.root = (
            Reading(response.text).root if "html" in response.headers.get("content-type", "") else Element("", {})
        )

    @property
    def title(self) -> str:
        return "".join(str(part) for part in self.one("title").parts)

    @property
    def text(self) -> str:
        return self.root.text

    def all(self, selector: str) -> list[Element]:
        return self.root.all(selector)

    def one(self, selector: str) -> Element:
        return self.root.one(selector)

    def links(self) -> list[str]:
        return [link["href"] for link in self.all("a[href]")]


class Visitor:
    """`get` and `post` show the answer itself: nobody is led on by a redirect."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def sign_in(self, secret: str) -> Self:
        answer = await self.post("/sign-in", token=secret, next="/")
        assert answer.status == 303, answer.text
        return self

    async def get(self, address: str, **headers: str) -> Page:
        return Page(await self._client.get(address, headers=headers))

    async def post(self, address: str, **fields: Field) -> Page:
        """With the proof that the form is our own, unless `csrf` is given."""
        return await self.send(address, {}, **fields)

    async def post_in_place(self, address: str, **fields: Field) -> Page:
        """As htmx sends it: the answer is a part of the page."""
        return await self.send(address, {"hx-request": "true"}, **fields)

    async def send(self, address: str, headers: dict[str, str], **fields: Field) -> Page:
        return Page(await self._client.post(address, data=self._proven(fields), headers=headers))

    @property
    def csrf(self) -> str:
        secret = self._client.cookies.get(visiting.COOKIE)
        return "" if secret is None else visiting.csrf_of(secret.encode())

    def _proven(self, fields: dict[str, Field]) -> dict[str, Field]:
        return {visiting.FIELD: self.csrf, **fields}


@asynccontextmanager
async def a_stranger(service: Service) -> AsyncGenerator[Visitor]:
    """Somebody who is not signed in."""
    transport = ASGITransport(application(service), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://yard.example") as client:
        yield Visitor(client)


@asynccontextmanager
async def a_visitor(
    scenario: Scenario, *scopes: Scope, repos: tuple[Repo, ...] = (), name: str = "ada"
) -> AsyncGenerator[Visitor]:
    """Somebody who may read, and do whatever is named besides."""
    _, secret = await scenario.service.tokens.create(name, {Scope.READ, *scopes}, repos)
    async with a_stranger(scenario.service) as visitor:
        yield await visitor.sign_in(secret)
