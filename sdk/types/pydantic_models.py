"""Parts of an object as pydantic models: `spec: SiteSpec` of a `pydantic.BaseModel` inside an `oarlock.Object`.

They are decoded by pydantic and described by its schema. Names are pydantic's: an alias if there is one. pydantic is an
extra (`oarlock[pydantic]`) and is imported by the user's file only: here a model is known by its methods.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

from oarlock.sdk.kinds import BadDefinition

Schema = dict[str, Any]


class ModelMisfit(ValueError):
    """A value that a pydantic model refuses. `where`: the way to it below the model; `what`: what is wrong."""

    def __init__(self, where: tuple[str | int, ...], what: str) -> None:
        super().__init__(what)
        self.where, self.what = where, what


def is_model(cls: Any) -> bool:
    """Whether this is a class of pydantic's models."""
    return isinstance(cls, type) and hasattr(cls, "model_validate") and hasattr(cls, "model_json_schema")


def schema_hook(cls: type) -> Schema:
    """For ``msgspec.json.schema``: the model's schema without references. Raises BadDefinition, NotImplementedError."""
    if not is_model(cls):
        raise NotImplementedError(cls.__name__)
    try:
        whole: Schema = cls.model_json_schema(by_alias=True)  # type: ignore[attr-defined]
    except Exception as error:  # of pydantic's classes, which are not imported here
        raise BadDefinition(f"{cls.__name__}: {str(error).partition(chr(10))[0]}") from None
    found = _inlined(whole, whole.get("$defs", {}), (cls.__name__,))
    assert isinstance(found, dict)
    return found


def _inlined(part: Any, named: dict[str, Schema], seen: tuple[str, ...]) -> Any:
    if isinstance(part, list):
        return [_inlined(each, named, seen) for each in part]
    if not isinstance(part, dict):
        return part
    if (reference := part.get("$ref")) is not None:
        name = reference.rpartition("/")[2]
        if name in seen:
            why = f"{name} holds itself, which no schema of Kubernetes can say; use dict[str, Any] there"
            raise BadDefinition(f"{seen[0]}: {why}")
        beside = {word: each for word, each in part.items() if word != "$ref"}
        return {**_inlined(named[name], named, (*seen, name)), **beside}
    return {
        word: each if word in ("default", "enum", "const") else _inlined(each, named, seen)
        for word, each in part.items()
        if word not in ("$defs", "discriminator") and not (word == "title" and isinstance(each, str))
    }


def decoded(cls: type, value: Any) -> Any:
    """For msgspec's ``dec_hook``: the model of a decoded value. Raises ModelMisfit, NotImplementedError."""
    if not is_model(cls):
        raise NotImplementedError(cls.__name__)
    try:
        return cls.model_validate(value)  # type: ignore[attr-defined]
    except Exception as error:  # pydantic's ValidationError, which has `errors`; or anything, of a validator
        if says_nothing_of_it(error):
            raise
        if not isinstance(error, ValueError) or not hasattr(error, "errors"):
            raise ModelMisfit((), raised(error, cls)) from None
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise ModelMisfit(tuple(first["loc"]), first["msg"]) from None


def says_nothing_of_it(error: Exception) -> bool:
    """Whether this came while an object was decoded, and not of it: what ends a turn early is raised by a signal,
    wherever the code is. The object has to be tried again.
    """
    return isinstance(error, MemoryError) or getattr(error, "of_the_turn", False)


def raised(error: Exception, cls: type) -> str:
    """For messages: that the code of a type raised what says nothing of the object. Its own words may hold a secret."""
    *_, last = traceback.extract_tb(error.__traceback__)
    where = f"{last.name}, line {last.lineno} of {Path(last.filename).name}"
    return f"its type {cls.__name__} raised {type(error).__name__} ({where}); raise ValueError for what is not allowed"


def encoded(value: Any) -> Any:
    """For msgspec's ``enc_hook``: a model as dicts, lists and scalars. Raises NotImplementedError."""
    if not is_model(type(value)):
        raise NotImplementedError(f"a value of type {type(value).__name__}")
    return _sets_sorted(value.model_dump(mode="json", by_alias=True, exclude_none=True), value)


def _sets_sorted(plain: Any, said: Any) -> Any:
    """pydantic dumps a set in its own order, which is another one in each process. ``said``: what was dumped."""
    if is_model(type(said)):
        return _fields_sorted(plain, said)
    if isinstance(plain, list) and isinstance(said, set | frozenset):
        return sorted(plain, key=repr)
    if isinstance(plain, list) and isinstance(said, list | tuple) and len(plain) == len(said):
        return [_sets_sorted(*each) for each in zip(plain, said, strict=True)]
    if isinstance(plain, dict) and isinstance(said, dict) and len(plain) == len(said):
        return {name: _sets_sorted(plain[name], each) for name, each in zip(plain, said.values(), strict=True)}
    return plain


def _fields_sorted(plain: Any, model: Any) -> Any:
    cls = type(model)
    if not isinstance(plain, dict):
        return _sets_sorted(plain, getattr(model, "root", None))
    fields = {**cls.model_fields, **cls.model_computed_fields}
    names = {getattr(each, "serialization_alias", None) or each.alias or name: name for name, each in fields.items()}
    return {
        name: _sets_sorted(each, getattr(model, names[name])) if name in names else each for name, each in plain.items()
    }
