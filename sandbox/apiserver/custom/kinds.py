"""What a CustomResourceDefinition says, read once: names, scope, and what each version has.

Upstream: staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/types.go. Only definitions that passed
validation are read.
"""

from __future__ import annotations

from typing import Any, Final

from oarlock.sandbox.apiserver.custom import json_path
from oarlock.sandbox.apiserver.custom.printer import custom_printer
from oarlock.sandbox.apiserver.custom.rules import CustomRules, ScalePaths
from oarlock.sandbox.apiserver.kinds.kind import Kind, no_selectable

Obj = dict[str, Any]

DEFINITION: Final = "CustomResourceDefinition"


def store_name(definition: Obj) -> str:
    """The store's name for the kind: `Widget.example.com`."""
    spec = definition["spec"]
    return f"{spec['names']['kind']}.{spec['group']}"


def kind_of(definition: Obj) -> Kind:
    """The kind that a definition defines, in its stored version and with the others that are served."""
    versions = definition["spec"]["versions"]
    changed = definition["metadata"].get("generation", 1) > 1
    stored = next(version for version in versions if version.get("storage"))
    rules = _rules(definition, stored, None, changed)
    others = tuple(
        _kind(definition, version, _rules(definition, version, rules, changed))
        for version in versions
        if version is not stored and version.get("served")
    )
    return _kind(definition, stored, rules, others)


def _rules(definition: Obj, version: Obj, stored_as: CustomRules | None, changed: bool) -> CustomRules:
    parts = version.get("subresources") or {}
    scale = parts.get("scale")
    return CustomRules(
        api_version=f"{definition['spec']['group']}/{version['name']}",
        schema=version["schema"]["openAPIV3Schema"],
        has_status=parts.get("status") is not None,
        scale=None
        if scale is None
        else ScalePaths(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or ""),
        stored_as=stored_as,
        changed=changed,
        terminating=bool(definition["metadata"].get("deletionTimestamp")),
    )


def _kind(definition: Obj, version: Obj, rules: CustomRules, others: tuple[Kind, ...] = ()) -> Kind:
    spec = definition["spec"]
    accepted = (definition.get("status") or {}).get("acceptedNames") or spec["names"]
    parts = {part for part, has in (("status", rules.has_status), ("scale", rules.scale is not None)) if has}
    paths = [field["jsonPath"] for field in version.get("selectableFields") or ()]
    return Kind(
        store_name(definition),
        group=spec["group"],
        version=version["name"],
        short_names=tuple(accepted.get("shortNames") or ()),
        categories=tuple(accepted.get("categories") or ()),
        namespaced=spec["scope"] == "Namespaced",
        subresources=frozenset(parts),
        has_generation=True,
        unconditional_update=False,
        selectable=_selectable(paths) if paths else no_selectable,
        kind=spec["names"]["kind"],
        list_name=spec["names"]["listKind"],
        plural=spec["names"]["plural"],
        singular=spec["names"]["singular"],
        printer=custom_printer(version.get("additionalPrinterColumns") or []),
        custom=rules,
        served=bool(version.get("served")),
        other_versions=others,
    )


def _selectable(paths: list[str]) -> Any:
    """The fields that a fieldSelector may name, as text; an absent one is empty."""

    def fields(obj: Obj) -> dict[str, str]:
        return {path.removeprefix("."): _text(json_path.first(path, obj)) for path in paths}

    return fields


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
