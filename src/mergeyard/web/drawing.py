"""Draws a template: everything that it is given is text until it says otherwise."""

from typing import cast

from jinja2 import DictLoader, Environment, StrictUndefined

from mergeyard import __version__
from mergeyard.domain import priorities
from mergeyard.web import addresses, words
from mergeyard.web.shipped import FINGERPRINTS, TEMPLATES

FILTERS = {
    each.__name__: each
    for each in (words.ago, words.ahead, words.clock, words.lasting, words.moment, words.short, words.time_of_day)
}


def draw(template: str, **context: object) -> str:
    return templates.get_template(template).render(context)


def static(name: str) -> str:
    """The address changes with the file, so that browsers may keep it for ever."""
    return f"/static/{name}?{FINGERPRINTS[name]}"


GLOBALS: dict[str, object] = {
    "address": addresses,
    "priorities": priorities,
    "static": static,
    "version": __version__,
    "words": words,
}
templates = Environment(
    loader=DictLoader(TEMPLATES),
    auto_reload=False,
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
cast(dict[str, object], templates.globals).update(GLOBALS)
cast(dict[str, object], templates.filters).update(FILTERS)
