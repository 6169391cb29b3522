"""From an object of the API to the user's type, or to a sentence about why it does not fit.

try:
    site = Typed(Website).decode(body)
except DoesNotFit as misfit:
    print(misfit)  # spec.replicas: has to be a whole number, not a text
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

from oarlock.sdk.kinds import BadDefinition
from oarlock.sdk.objects import Object
from oarlock.sdk.types import pydantic_models
from oarlock.sdk.types.structural import Schema, part_at

T = TypeVar("T", bound=Object)
Steps = tuple[str | int, ...]

_MESSAGE = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_ANY = "..."
"""msgspec does not say which value of a dict it means."""
_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_LIMITS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_COUNTED = {"str": "characters", "array": "items", "object": "entries", "bytes": "bytes"}
_ONE = {"characters": "character", "items": "item", "entries": "entry", "bytes": "byte"}


class DoesNotFit(ValueError):
    """An object that is not of its type: `path: what is wrong`. It holds no values but those of an enum."""


class Typed(Generic[T]):
    """A type, ready to decode."""

    __slots__ = ("_decoder", "model")

    def __init__(self, model: type[T]) -> None:
        """Raises BadDefinition for a type that msgspec cannot decode, or whose annotations name what is not there."""
        self.model = model
        try:
            self._decoder = msgspec.json.Decoder(model, dec_hook=pydantic_models.decoded)
        except (TypeError, NameError) as error:
            raise BadDefinition(f"{model.__name__}: {str(error).partition(chr(10))[0]}") from None

    def decode(self, body: bytes) -> T:
        """The object of this JSON. Raises DoesNotFit."""
        try:
            return self._decoder.decode(body)
        except (msgspec.ValidationError, NotImplementedError) as error:
            raise DoesNotFit(self._told(body, error)) from None
        except msgspec.DecodeError as error:
            raise DoesNotFit(f"no JSON: {error}") from None
        except Exception as error:  # of a __post_init__: whatever it raises, the object cannot be read
            if pydantic_models.says_nothing_of_it(error):
                raise
            raise DoesNotFit(f"the object: {pydantic_models.raised(error, self.model)}") from None

    def from_json(self, obj: dict[str, Any]) -> T:
        """As `decode`, of a decoded object."""
        return self.decode(msgspec.json.encode(obj))

    def fault(self, body: bytes) -> str:
        """Why it does not fit; empty if it does."""
        try:
            self.decode(body)
        except DoesNotFit as misfit:
            return str(misfit)
        return ""

    def _told(self, body: bytes, error: Exception) -> str:
        found = _MESSAGE.fullmatch(str(error))
        assert found is not None
        obj = msgspec.json.decode(body)
        way = self._resolved(obj, tuple(_steps(found["path"] or "")), str(error))
        if isinstance(error.__cause__, pydantic_models.ModelMisfit):
            way = (*way, *_existing(_at(obj, way), error.__cause__.where))
            return f"{_path(way)}: {error.__cause__.what[:1].lower()}{error.__cause__.what[1:]}"
        missing = re.fullmatch(r"Object missing required field `(.*)`", found["what"])
        if missing:
            return f"{_path((*way, missing[1]))}: is required"
        told = self._sentence(found["what"], way, of_key=found["key"] is not None)
        return f"{_path(way)}: {told}"

    def _resolved(self, obj: Any, way: Steps, said: str) -> Steps:
        """The way with the names of entries: of a dict, the entry that is wrong also where it is alone."""
        for index, step in enumerate(way):
            if step != _ANY:
                continue
            entries = _at(obj, way[:index])
            for name in entries if isinstance(entries, dict) else ():
                try:
                    self._decoder.decode(msgspec.json.encode(_replaced(obj, way[:index], {name: entries[name]})))
                except Exception as error:  # of a __post_init__, too
                    if pydantic_models.says_nothing_of_it(error):
                        raise
                    if str(error) == said:
                        return self._resolved(obj, (*way[:index], name, *way[index + 1 :]), said)
        return way

    def _sentence(self, what: str, way: Steps, *, of_key: bool) -> str:
        subject = "the name " if of_key else ""
        if found := re.fullmatch(r"Expected `(.*)`, got `(.*)`", what):
            wanted = " or ".join(_WORDS.get(each, each) for each in found[1].split(" | "))
            return f"{subject}has to be {wanted}, not {_WORDS.get(found[2], found[2])}"
        if found := re.fullmatch(r"Expected `(.*)` of length (?:(\S+) )?(\d+)", what):
            counted, limit = _COUNTED.get(found[1], "items"), f"{_LIMITS[found[2]]} " if found[2] else ""
            return f"{subject}needs {limit}{found[3]} {counted if found[3] != '1' else _ONE[counted]}"
        if found := re.fullmatch(r"Expected `.*` ([<>]=?) (.*)", what):
            return f"{subject}has to be {_LIMITS[found[1]]} {found[2]}"
        if found := re.fullmatch(r"Expected `.*` that's a multiple of (.*)", what):
            return f"{subject}has to be a multiple of {found[1]}"
        if found := re.fullmatch(r"Expected `str` matching regex (.*)", what):
            return f"{subject}has to match {found[1]}"
        if found := re.fullmatch(r"Invalid (?:enum )?value (.*)", what):
            choices = [] if of_key else self._choices(way)
            told = f"is not one of {', '.join(choices)}" if choices else "is not allowed"
            return f"{subject}{found[1]} {told}"
        return f"{subject}{what[:1].lower()}{what[1:]}"

    def _choices(self, way: Steps) -> list[str]:
        from oarlock.sdk.types.crd import schema_of  # noqa: PLC0415 - for a message alone

        try:
            found: Schema | None = part_at(schema_of(self.model), _path(way))
        except (BadDefinition, AttributeError):
            return []
        return [str(each) for each in (found or {}).get("enum", ()) if each is not None]


def _steps(path: str) -> Iterator[str | int]:
    for name, index in _STEP.findall(path):
        yield name or (_ANY if index == _ANY else int(index))


def _path(way: Steps) -> str:
    text = ""
    for step in way:
        plain = isinstance(step, str) and re.fullmatch(r"[\w-]+", step)
        text += f".{step}" if plain else f"[{step}]"
    return text.removeprefix(".") or "the object"


def _at(obj: Any, way: Steps) -> Any:
    for step in way:
        try:
            obj = obj[step]
        except (KeyError, IndexError, TypeError):
            return None
    return obj


def _replaced(obj: Any, way: Steps, value: Any) -> Any:
    if not way:
        return value
    step, *rest = way
    if isinstance(obj, dict):
        return {**obj, step: _replaced(obj[step], tuple(rest), value)}
    assert isinstance(step, int)
    return [*obj[:step], _replaced(obj[step], tuple(rest), value), *obj[step + 1 :]]


def _existing(value: Any, where: Steps) -> Steps:
    """pydantic's way without the names of the branches of unions, which are in no object."""
    way: list[str | int] = []
    for index, step in enumerate(where):
        here = step in value if isinstance(value, dict) else isinstance(value, list) and isinstance(step, int)
        if here:
            value = _at(value, (step,))
        elif index < len(where) - 1:
            continue
        way.append(step)
    return tuple(way)
