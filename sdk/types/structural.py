"""JSON schemas of Python types as structural schemas, the only kind that a CustomResourceDefinition takes.

In: what msgspec and pydantic generate (draft 2020-12, with references). Out: OpenAPI v3 with neither references nor
types inside of unions. What cannot be said so is a BadDefinition with the type and the path of the field.
Upstream: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema (structural.go, validation.go).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from oarlock.sdk.kinds import BadDefinition

Schema = dict[str, Any]

PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
LIST_TYPE: Final = "x-kubernetes-list-type"
_ORDER: Final[tuple[str, ...]] = (
    *("description", "type", "format", INT_OR_STRING, "nullable", "default", "enum", "pattern", "minLength"),
    *("maxLength", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems"),
    *("minProperties", "maxProperties", "required", "properties", "additionalProperties", "items", "anyOf"),
)
"""In which order the words of a schema stand; others come after them, by the alphabet."""
_KEPT: Final[tuple[str, ...]] = (
    "minLength",
    "maxLength",
    "multipleOf",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
)
_FORMATS: Final = frozenset(("byte", "date", "date-time", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"))
"""Those that mean the same to Kubernetes. Its `duration` is `5s`, that of Python's libraries `PT5S`."""
_NOT_IN_GO: Final = re.compile(r"\(\?(?:[=!]|<[=!]|P=|\()|\\[1-9]|\\[ZA](?=.)|[*+?}]\+")
"""Look-around, references to groups, possessive repeats: RE2 has none of them."""
_INSTEAD: Final = (
    "give it a type of one form, or say its schema with "
    'Annotated[..., msgspec.Meta(extra_json_schema={"x-kubernetes-preserve-unknown-fields": True})],'
    " in a pydantic model with Field(json_schema_extra=) of the same"
)


def structural(schema: Schema, named: Mapping[str, Schema], model: str, path: str) -> Schema:
    """The schema of what stands at `path` in objects of the type `model`. `named`: what references lead to.

    Raises BadDefinition.
    """
    return _Translation(named, model).node(schema, path, ())


def without_defaults(schema: Schema) -> Schema:
    """The same without defaults. The status has none: the server would write them into each status of ours."""
    done = {word: value for word, value in schema.items() if word != "default"}
    if "properties" in done:
        done["properties"] = {name: without_defaults(part) for name, part in done["properties"].items()}
    for word in ("additionalProperties", "items"):
        if isinstance(done.get(word), dict):
            done[word] = without_defaults(done[word])
    return done


def part_at(schema: Schema, path: str) -> Schema | None:
    """The schema of a field, by a path such as `spec.hosts[0].name`, `spec.hosts[].name` or `spec.labels[a.b/c]`.

    None if the type has no such field, {} if it is one of a free part.
    """
    for inside, name in re.findall(r"\[([^\]]*)\]|([^.\[\]]+)", path):
        if schema.get(PRESERVE) and not schema.get("properties"):
            return {}
        if not name and "items" in schema:
            found = schema["items"]
        else:
            found = (schema.get("properties") or {}).get(name or inside, schema.get("additionalProperties"))
        if found is None:
            return {} if schema.get(PRESERVE) else None
        schema = found
    return schema


class _Translation:
    """Of one type. `seen`: the names of the references that led here, to find a type that holds itself."""

    def __init__(self, named: Mapping[str, Schema], model: str) -> None:
        self._named, self._model = named, model

    def node(self, schema: Schema, path: str, seen: tuple[str, ...]) -> Schema:
        schema, seen = self._resolved(schema, path, seen)
        extra = {word: value for word, value in schema.items() if word.startswith("x-kubernetes-")}
        parts, nullable = self._parts(schema, path, seen)
        if extra.get(PRESERVE) or extra.get(INT_OR_STRING):
            done = _free(schema, nullable)
        elif not parts:
            raise self._bad(path, seen, "it can be nothing but None")
        elif len(parts) == 1:
            schema = {**parts[0][0], **schema}
            done = self._one(*parts[0], path)
        else:
            done = self._union(parts, path)
        if nullable and "enum" not in done:  # upstream refuses null by any enum; a field's null is dropped before that
            done["nullable"] = True
        if schema.get("description"):
            done["description"] = " ".join(schema["description"].split())
        empty_bytes = done.get("format") == "byte" and not schema.get("default")  # Kubernetes 1.20 refuses it as one
        if schema.get("default") is not None and not empty_bytes:
            done["default"] = msgspec.json.decode(msgspec.json.encode(schema["default"]))  # a tuple is a list there
        return _ordered({**done, **extra})

    def _resolved(self, schema: Schema, path: str, seen: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
        """Without a reference at its top; what stands beside the reference comes first."""
        while True:
            if len(schema.get("allOf", ())) == 1:
                schema = {**schema["allOf"][0], **{word: each for word, each in schema.items() if word != "allOf"}}
            reference = schema.get("$ref")
            if reference is None:
                return schema, seen
            name = reference.rpartition("/")[2]
            if name in seen:
                why = f"{name} holds itself, which no schema of Kubernetes can say; use dict[str, Any] there"
                raise self._bad(path, seen, why)
            seen = (*seen, name)
            schema = {**self._named[name], **{word: each for word, each in schema.items() if word != "$ref"}}

    def _parts(
        self, schema: Schema, path: str, seen: tuple[str, ...]
    ) -> tuple[list[tuple[Schema, tuple[str, ...]]], bool]:
        """What the value may be, each without a reference and once; and whether it may be null."""
        options = schema.get("anyOf") or schema.get("oneOf")
        if options is None:
            if "const" in schema:
                schema = {**schema, "enum": [schema["const"]]}
            values = schema.get("enum")
            nullable = schema.get("type") == "null" or (values is not None and None in values)
            if values is not None:
                schema = {**schema, "enum": [value for value in values if value is not None]}
            empty = schema.get("type") == "null" or schema.get("enum") == []
            return ([] if empty else [(schema, seen)]), nullable
        parts: list[tuple[Schema, tuple[str, ...]]] = []
        may_be_null = False
        for option in options:
            resolved, inner_seen = self._resolved(option, path, seen)
            inner, nullable = self._parts(resolved, path, inner_seen)
            parts += [part for part in inner if part not in parts]
            may_be_null = may_be_null or nullable
        return parts, may_be_null

    def _one(self, schema: Schema, seen: tuple[str, ...], path: str) -> Schema:
        if "enum" in schema:
            return self._choice(schema["enum"], path, seen)
        match schema.get("type"):
            case "object":
                return self._object(schema, seen, path)
            case "array":
                return self._array(schema, seen, path)
            case "string":
                return self._string(schema, seen, path)
            case "integer":
                return {"type": "integer", "format": "int64", **_limits(schema)}
            case "number":
                return {"type": "number", **_limits(schema)}
            case "boolean":
                return {"type": "boolean"}
            case None:
                return _free(schema, nullable=True)
        raise self._bad(path, seen, f"the server has no type {schema['type']}")

    def _choice(self, values: list[Any], path: str, seen: tuple[str, ...]) -> Schema:
        types = {_TYPES.get(type(value), "") for value in values}
        if types == {"integer", "string"}:
            return {INT_OR_STRING: True, "enum": values}
        if len(types) > 1 or "" in types:
            raise self._bad(path, seen, f"its values {values} are not of one type")
        return {"type": types.pop(), "enum": values}

    def _string(self, schema: Schema, seen: tuple[str, ...], path: str) -> Schema:
        done: Schema = {"type": "string", **_limits(schema)}
        if schema.get("contentEncoding") == "base64":
            done["format"] = "byte"
        elif schema.get("format") in _FORMATS:
            done["format"] = schema["format"]
        if pattern := schema.get("pattern"):
            if _NOT_IN_GO.search(pattern):
                why = f"the server's patterns are Go's (RE2), without look-around and references to groups: {pattern}"
                raise self._bad(path, seen, why)
            done["pattern"] = pattern
        return done

    def _object(self, schema: Schema, seen: tuple[str, ...], path: str) -> Schema:
        done: Schema = {"type": "object", **_limits(schema)}
        fields, others = schema.get("properties"), schema.get("additionalProperties")
        if fields is None and isinstance(others, dict) and others:
            return {**done, "additionalProperties": self.node(others, f"{path}.*", seen)}
        if fields:
            inner = {name: self.node(part, f"{path}.{name}", seen) for name, part in fields.items()}
            done["properties"] = inner
            if required := [name for name in inner if name in schema.get("required", ())]:
                done["required"] = required
        if (fields is None and others is not False) or others is True or (fields and isinstance(others, dict)):
            done[PRESERVE] = True
        return done

    def _array(self, schema: Schema, seen: tuple[str, ...], path: str) -> Schema:
        done: Schema = {"type": "array", **_limits(schema)}
        if first := schema.get("prefixItems"):
            of_each = [self.node(part, f"{path}[]", seen) for part in first]
            if any(each != of_each[0] for each in of_each):
                raise self._bad(path, seen, "a list with another type in each place; use a Struct")
            return {**done, "items": of_each[0]}
        items = schema.get("items")
        done["items"] = self.node(items if isinstance(items, dict) else {}, f"{path}[]", seen)
        if schema.get("uniqueItems") and done["items"].get("type") in _SCALARS and not done["items"].get("nullable"):
            done[LIST_TYPE] = "set"
        return done

    def _union(self, parts: list[tuple[Schema, tuple[str, ...]]], path: str) -> Schema:
        kinds = {schema.get("type") or ("enum" if "enum" in schema else "") for schema, _ in parts}
        if "" in kinds:
            return _free({}, nullable=True)
        if kinds == {"object"}:
            return self._tagged(parts, path)
        done = [self._one(schema, seen, path) for schema, seen in parts]
        types = {each.get("type", "") for each in done}
        if all("enum" in each for each in done):
            return self._choice([value for each in done for value in each["enum"]], path, parts[0][1])
        if types == {"integer", "number"} and not any(each.keys() - {"type", "format"} for each in done):
            return {"type": "number"}
        if types == {"integer", "string"} and len(done) == 2:
            merged = {INT_OR_STRING: True}
            for each in done:
                if "enum" in each and each["type"] == "integer":
                    break
                if "enum" in each:  # of the strings alone: a pattern says nothing of numbers
                    each["pattern"] = f"^(?:{'|'.join(re.escape(value) for value in each.pop('enum'))})$"
                merged |= {word: value for word, value in each.items() if word not in ("type", "format")}
            else:
                return merged
        told = " or ".join(sorted(str(each.get("type", "anything")) for each in done))
        raise self._bad(path, parts[0][1], f"{told}: no schema of Kubernetes says that; {_INSTEAD}")

    def _tagged(self, parts: list[tuple[Schema, tuple[str, ...]]], path: str) -> Schema:
        """Objects told apart by one field: the fields of all of them, and for each tag which of them it asks for."""
        tag = _tag_of([schema for schema, _ in parts])
        if tag is None:
            why = "objects that no field tells apart; give each Struct a tag (tag_field=, tag=)"
            raise self._bad(path, parts[0][1], why)
        fields: dict[str, Schema] = {}
        tags: list[Any] = []
        options: list[Schema] = []
        for schema, seen in parts:
            done = self._object(schema, seen, path)
            tags += (own := done["properties"][tag]["enum"])
            for name, part in done["properties"].items():
                if name == tag:
                    continue
                if name in fields and _rules(fields[name]) != _rules(part):
                    raise self._bad(f"{path}.{name}", seen, "it has another type in another part of the union")
                fields[name] = part if name not in fields or fields[name] == part else _rules(part)
            required = [tag, *(name for name in done.get("required", ()) if name != tag)]
            options.append({"properties": {tag: {"enum": own}}, "required": required})
        everywhere = set.intersection(*({*schema["properties"]} for schema, _ in parts))
        fields = {name: part if name in everywhere else _without(part, "default") for name, part in fields.items()}
        types = {_TYPES[type(each)] for each in tags}
        if len(types) > 1:
            raise self._bad(f"{path}.{tag}", parts[0][1], "its tags are not of one type")
        chosen = {tag: {"type": types.pop(), "enum": tags}}
        return {"type": "object", "required": [tag], "properties": {**chosen, **fields}, "anyOf": options}

    def _bad(self, path: str, seen: tuple[str, ...], why: str) -> BadDefinition:
        holder = next((name for name in reversed(seen) if "properties" in self._named.get(name, {})), "")
        within = f" (in {holder})" if holder and holder != self._model else ""
        return BadDefinition(f"{self._model}: {path}{within}: {why}")


_TYPES: Final = {str: "string", int: "integer", bool: "boolean", float: "number"}
_SCALARS: Final = frozenset(_TYPES.values())


def _free(schema: Schema, nullable: bool) -> Schema:
    """Anything, or what the words beside it still say."""
    done: Schema = {word: schema[word] for word in ("type", *_KEPT) if word in schema and schema.get("type") != "null"}
    return {
        **done,
        **({} if schema.get(INT_OR_STRING) else {PRESERVE: True}),
        **({"nullable": True} if nullable else {}),
    }


def _limits(schema: Schema) -> Schema:
    """Limits of numbers and lengths. Draft 4, which Kubernetes speaks, says an open limit by a second word."""
    done: Schema = {word: schema[word] for word in _KEPT if word in schema}
    for word, open_word in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if word in schema:
            done[word] = schema[word]
        if open_word in schema:
            done[word], done[open_word] = schema[open_word], True
    return done


def _rules(schema: Schema) -> Schema:
    """What of a schema decides which values are right."""
    return _without(schema, "description", "default")


def _without(schema: Schema, *words: str) -> Schema:
    return {word: value for word, value in schema.items() if word not in words}


def _tag_of(parts: list[Schema]) -> str | None:
    """The field that has fixed values in each part, no value in two of them."""

    def values(schema: Schema, name: str) -> list[Any]:
        part = schema.get("properties", {}).get(name, {})
        return [part["const"]] if "const" in part else list(part.get("enum", ()))

    for name in parts[0].get("properties", ()):
        of_each = [values(part, name) for part in parts]
        together = [value for each in of_each for value in each]
        if all(of_each) and len(set(together)) == len(together):
            return str(name)
    return None


def _ordered(schema: Schema) -> Schema:
    known: Schema = {word: schema[word] for word in _ORDER if word in schema}
    return {**known, **{word: schema[word] for word in sorted(schema.keys() - known.keys())}}
