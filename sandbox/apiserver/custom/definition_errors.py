"""What is wrong with a CustomResourceDefinition, in upstream's words.

Upstream: staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from oarlock.sandbox.apiserver.custom import json_path
from oarlock.sandbox.apiserver.custom.pruning import pruned
from oarlock.sandbox.apiserver.custom.schema_errors import SchemaCheck
from oarlock.sandbox.apiserver.custom.structural import Schema, of_others, properties, structural_errors
from oarlock.sandbox.apiserver.errors import FieldError
from oarlock.sandbox.apiserver.text import names
from oarlock.sandbox.apiserver.validation.values import named

Obj = dict[str, Any]

_SCOPES: Final = ("Cluster", "Namespaced")
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_SELECTABLE_MAX: Final = 8
_IMMUTABLE: Final = "field is immutable"


def definition_errors(definition: Obj) -> list[FieldError]:
    """What is wrong with a definition; empty if its kind can be served."""
    spec = definition.get("spec") or {}
    return [*_name_errors(definition, spec), *_spec_errors(spec)]


def definition_update_errors(new: Obj, old: Obj) -> list[FieldError]:
    """As `definition_errors`, and what cannot change once the names are established."""
    spec, old_spec = new.get("spec") or {}, old["spec"]
    errors = [] if spec is old_spec else definition_errors(new)
    conditions = (old.get("status") or {}).get("conditions") or ()
    if any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions):
        pairs: tuple[tuple[str, Callable[[Obj], Any]], ...] = (
            ("spec.scope", lambda given: given.get("scope")),
            ("spec.group", lambda given: given.get("group")),
            ("spec.names.kind", lambda given: (given.get("names") or {}).get("kind")),
            ("spec.names.plural", lambda given: (given.get("names") or {}).get("plural")),
        )
        for path, value in pairs:
            if value(spec) != value(old_spec):
                errors.append(FieldError.invalid(path, value(spec) or "", _IMMUTABLE))
    return [*errors, *definition_status_errors(new)]


def definition_status_errors(definition: Obj) -> Iterator[FieldError]:
    """A version in which objects may still be stored has to stay."""
    there = [version.get("name") for version in (definition.get("spec") or {}).get("versions") or ()]
    for position, version in enumerate((definition.get("status") or {}).get("storedVersions") or ()):
        if version not in there:
            why = (
                f"missing from spec.versions; {version} was previously a storage version, and must remain in "
                "spec.versions until a storage migration ensures no data remains persisted in "
                f"{version} and removes {version} from status.storedVersions"
            )
            yield FieldError.invalid(f"status.storedVersions[{position}]", version, why)


def _name_errors(definition: Obj, spec: Obj) -> Iterator[FieldError]:
    plural, group = (spec.get("names") or {}).get("plural") or "", spec.get("group") or ""
    name = definition["metadata"].get("name")
    if name and name != f"{plural}.{group}":
        yield FieldError.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _spec_errors(spec: Obj) -> Iterator[FieldError]:
    group, scope = spec.get("group"), spec.get("scope")
    if not group:
        yield FieldError.required("spec.group")
    else:
        yield from named(group, names.dns_subdomain, "spec.group")
        if "." not in group:
            yield FieldError.invalid("spec.group", group, "should be a domain with at least one dot")
    if scope not in _SCOPES:
        yield FieldError.unsupported("spec.scope", scope, _SCOPES) if scope else FieldError.required("spec.scope")
    if spec.get("preserveUnknownFields"):
        why = "cannot set to true, set x-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield FieldError.invalid("spec.preserveUnknownFields", True, why)
    yield from _names_errors(spec.get("names") or {})
    yield from _versions_errors(spec.get("versions") or [])
    yield from _conversion_errors(spec)


def _names_errors(given: Obj) -> Iterator[FieldError]:
    for field in ("plural", "singular", "kind", "listKind"):
        value = given.get(field)
        if not value:
            yield FieldError.required(f"spec.names.{field}")
            continue
        for problem in names.dns_label_1035(value.lower() if field in ("kind", "listKind") else value):
            why = f"may have mixed case, but should otherwise match: {problem}" if "ind" in field else problem
            yield FieldError.invalid(f"spec.names.{field}", value, why)
    for field in ("shortNames", "categories"):
        for position, value in enumerate(given.get(field) or ()):
            yield from (
                FieldError.invalid(f"spec.names.{field}[{position}]", value, problem)
                for problem in names.dns_label_1035(value)
            )
    if given.get("kind") and given.get("kind") == given.get("listKind"):
        yield FieldError.invalid("spec.names.listKind", given["listKind"], "kind and listKind may not be the same")


def _versions_errors(versions: list[Obj]) -> Iterator[FieldError]:
    told = [version.get("name") for version in versions]
    if len(set(told)) < len(told):
        yield FieldError.invalid("spec.versions", told, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        why = "must have exactly one version marked as storage version"
        yield FieldError.invalid("spec.versions", told, why)
    for position, version in enumerate(versions):
        path = f"spec.versions[{position}]"
        yield from named(version.get("name"), names.dns_label_1035, f"{path}.name")
        for field in ("served", "storage"):
            if not isinstance(version.get(field), bool):
                yield FieldError.required(f"{path}.{field}")
    for field, name, check in _PARTS:
        if versions and all(version.get(field) == versions[0].get(field) for version in versions):
            # Upstream converts what all versions have alike into a field of the spec, and its errors name that one.
            yield from check(versions[0].get(field), f"spec.{name}")
            continue
        for position, version in enumerate(versions):
            yield from check(version.get(field), f"spec.versions[{position}].{field}")


def _conversion_errors(spec: Obj) -> Iterator[FieldError]:
    """Webhooks are not called: a definition that needs one is refused rather than served in a wrong form."""
    strategy = (spec.get("conversion") or {}).get("strategy", "None")
    served = sum(bool(version.get("served")) for version in spec.get("versions") or ())
    if strategy not in ("None", "Webhook") or (strategy == "Webhook" and served > 1):
        yield FieldError.unsupported("spec.conversion.strategy", strategy, ["None"])


def _compile_errors(schema: Schema, path: str) -> list[FieldError]:
    """What keeps the schema from being used: a pattern that is none. Raises ApiError 500 without the library."""
    try:
        SchemaCheck(schema)
    except ValueError as error:
        return [FieldError.invalid(path, "", str(error).partition("\n")[0])]
    return []


def _default_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    """A default has to be valid and to have no unknown fields."""
    if "default" in schema:
        value, here = schema["default"], f"{path}.default"
        yield from SchemaCheck(schema).errors(value, here)
        if isinstance(value, dict) and pruned(value, schema) != value:
            yield FieldError.invalid(here, value, "must not have unknown fields")
    for name, part in properties(schema).items():
        yield from _default_errors(part, f"{path}.properties[{name}]")
    if (others := of_others(schema)) is not None:
        yield from _default_errors(others, f"{path}.additionalProperties")
    if isinstance(schema.get("items"), dict):
        yield from _default_errors(schema["items"], f"{path}.items")


def _schema_errors(given: Obj | None, path: str) -> Iterator[FieldError]:
    schema, where = (given or {}).get("openAPIV3Schema"), f"{path}.openAPIV3Schema"
    bad = structural_errors(schema, where)
    yield from bad
    if not bad and isinstance(schema, dict):
        yield from _compile_errors(schema, where) or _default_errors(schema, where)


def _subresource_errors(parts: Obj | None, path: str) -> Iterator[FieldError]:
    scale = (parts or {}).get("scale")
    if scale is None:
        return
    for field, starts, must in (
        ("specReplicasPath", (".spec.",), True),
        ("statusReplicasPath", (".status.",), True),
        ("labelSelectorPath", (".spec.", ".status."), False),
    ):
        value = scale.get(field)
        if not value:
            if must:
                yield FieldError.required(f"{path}.scale.{field}")
            continue
        try:
            json_path.plain_fields(value)
        except json_path.BadPath as bad:
            yield FieldError.invalid(f"{path}.scale.{field}", value, str(bad))
            continue
        if not value.startswith(starts):
            why = f"should be a json path under {' or '.join(start[:-1] for start in starts)}"
            yield FieldError.invalid(f"{path}.scale.{field}", value, why)


def _column_errors(columns: list[Obj] | None, path: str) -> Iterator[FieldError]:
    for position, column in enumerate(columns or ()):
        here = f"{path}[{position}]"
        if not column.get("name"):
            yield FieldError.required(f"{here}.name")
        type_ = column.get("type")
        if type_ not in _COLUMN_TYPES:
            where = f"{here}.type"
            yield FieldError.unsupported(where, type_, _COLUMN_TYPES) if type_ else FieldError.required(where)
        yield from _path_errors(column.get("jsonPath"), f"{here}.JSONPath")


def _selectable_errors(fields: list[Obj] | None, path: str) -> Iterator[FieldError]:
    fields = fields or []
    if len(fields) > _SELECTABLE_MAX:
        why = f"Too many: {len(fields)}: must have at most {_SELECTABLE_MAX} items"
        yield FieldError(path, "FieldValueTooMany", why)
    for position, field in enumerate(fields):
        where = f"{path}[{position}].jsonPath"
        value = field.get("jsonPath")
        yield from _path_errors(value, where)
        if value and value.startswith(".metadata"):
            yield FieldError.invalid(where, value, "must not point to fields in metadata")


def _path_errors(path: Any, where: str) -> Iterator[FieldError]:
    if not path:
        yield FieldError.required(where)
        return
    try:
        json_path.compiled(path)
    except json_path.BadPath as bad:
        yield FieldError.invalid(where, path, f"illegal JSONPath: {bad}")


_PARTS: Final[tuple[tuple[str, str, Callable[[Any, str], Iterator[FieldError]]], ...]] = (
    ("schema", "validation", _schema_errors),
    ("subresources", "subresources", _subresource_errors),
    ("additionalPrinterColumns", "additionalPrinterColumns", _column_errors),
    ("selectableFields", "selectableFields", _selectable_errors),
)
"""Of a version: its field, the name of the field where all versions have it alike, and the check."""
