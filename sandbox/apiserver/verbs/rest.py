"""The verbs on objects: create, get, list, update, patch, delete, delete collection.

Synchronous: a verb runs from its checks to its commit without letting anyone else in. The order of the
checks is upstream's (staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go): what the request
says about itself, preconditions, the server's own fields, defaults, namespace, validation, quota, commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from oarlock.sandbox.apiserver import patches
from oarlock.sandbox.apiserver.apply import request as managed
from oarlock.sandbox.apiserver.errors import (
    OBJECT_MODIFIED,
    ApiError,
    FieldError,
    bad_request,
    conflict,
    invalid,
    method_not_allowed,
    not_found,
)
from oarlock.sandbox.apiserver.http.negotiation import check_types
from oarlock.sandbox.apiserver.http.paths import Target
from oarlock.sandbox.apiserver.kinds.kinds import Kind
from oarlock.sandbox.apiserver.printing.tables import AS_IS, View, many, one
from oarlock.sandbox.apiserver.store.events import Stored
from oarlock.sandbox.apiserver.store.store import Store
from oarlock.sandbox.apiserver.text.selectors import Selector, selector_for
from oarlock.sandbox.apiserver.validation.metadata import IMMUTABLE
from oarlock.sandbox.apiserver.verbs import content
from oarlock.sandbox.apiserver.verbs.admission import Admission
from oarlock.sandbox.apiserver.verbs.deletion import DeleteOptions, options_from
from oarlock.sandbox.apiserver.verbs.listing import Page, Snapshots, list_page

Obj = dict[str, Any]
Objs = list[Obj]
Params = Mapping[str, str]


@dataclass(slots=True)
class Outcome:
    """An answer: HTTP code, body, Retry-After in seconds, and the metadata of the object it is about."""

    code: int
    body: bytes
    about: Obj = field(default_factory=dict)
    retry_after_s: int | None = None

    @classmethod
    def refusal(cls, error: ApiError) -> Outcome:
        return cls(error.code, orjson.dumps(error.status()), {}, error.retry_after_s)


def refuse_unless_valid(kind: Kind, name: str, errors: list[FieldError]) -> None:
    """Raises ApiError 422 if there are errors."""
    if errors:
        raise invalid(kind.kind, kind.group, name, errors)


def is_dry_run(params: Params) -> bool:
    """Raises ApiError 400 for a dryRun other than All."""
    asked = params.get("dryRun", "")
    if asked not in ("", "All"):
        raise bad_request(f'invalid dryRun "{asked}": only "All" is supported')
    return asked == "All"


def is_strict(params: Params) -> bool:
    """Whether unknown fields are refused. Raises ApiError 422 for a fieldValidation that does not exist."""
    asked = params.get("fieldValidation", "")
    if asked not in ("", "Ignore", "Warn", "Strict"):
        error = FieldError.unsupported("fieldValidation", asked, ["", "Ignore", "Warn", "Strict"])
        raise invalid("CreateOptions", "meta.k8s.io", "", [error])
    return asked == "Strict"


class Rest:
    """The verbs on one store. Every method raises ApiError for a refusal."""

    def __init__(self, store: Store, admission: Admission) -> None:
        self.store = store
        self.admission = admission
        self._snapshots = Snapshots()

    # -- reading ---------------------------------------------------------------------------------

    def get(self, target: Target, view: View) -> Outcome:
        stored = self.store.require(target.kind.name, target.namespace, target.name)
        return self._answer(200, target.kind, stored, view)

    def list(self, target: Target, params: Params, view: View) -> Outcome:
        page = self._page(target, params)
        body = many(target.kind, page.items, page.meta, view, self.store.clock())
        return Outcome(200, body)

    # -- writing ---------------------------------------------------------------------------------

    def create(
        self, target: Target, obj: Obj, params: Params, view: View = AS_IS, *, entries: Objs | None = None
    ) -> Outcome:
        """`entries`: the managers of an object that an apply creates."""
        kind = target.kind
        if target.name or (kind.namespaced and not target.namespace):
            raise method_not_allowed(kind.plural, kind.group, "POST")
        check_types(kind, obj)
        meta = obj["metadata"]
        self._fit_namespace(target, meta)
        if meta.get("resourceVersion") not in (None, "", "0"):
            # Upstream's storage refuses this without a reason of its own.
            raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
        obj = content.for_create(kind, obj, strict=is_strict(params))
        self.admission.enter(kind, obj)
        name = meta.get("name") or meta.get("generateName") or ""
        refuse_unless_valid(kind, name, content.create_errors(kind, obj))
        self.admission.create(kind, obj)
        obj = self.admission.complete(kind, obj)
        if entries is None:
            entries = managed.entries_of(kind, "", None, obj, params, self.store.clock())
        obj = managed.with_entries(obj, entries)
        stored = self.store.create_stored(kind.name, content.to_store(kind, obj), dry_run=is_dry_run(params))
        return self._answer(201, kind, stored, view)

    def update(self, target: Target, new: Obj, params: Params, view: View = AS_IS) -> Outcome:
        """PUT of an object or of its status."""
        kind = target.kind
        check_types(kind, new)
        self._fit_name(target, new["metadata"])
        if (
            kind.create_on_update
            and not target.subresource
            and self.store.stored(kind.name, target.namespace, target.name) is None
        ):
            return self.create(Target(kind, target.namespace), new, params, view)
        stored = self.replace(target, new, params)
        return self._answer(200, kind, stored, view)

    def patch(self, target: Target, content_type: str, patch: Any, params: Params, view: View = AS_IS) -> Outcome:
        """PATCH of an object or of its status."""
        managed.check_options(params, applying=False)
        kind = target.kind
        old = content.from_store(kind, self.store.require(kind.name, target.namespace, target.name).obj)
        content.check_patch_type(kind, content_type)
        new = patches.apply(content_type, kind.name, old, patch)
        new = {**new, "metadata": dict(new["metadata"])} if isinstance(new.get("metadata"), dict) else new
        check_types(kind, new)
        self._fit_name(target, new["metadata"])
        return self._answer(200, kind, self.replace(target, new, params, patched=True), view)

    def apply(self, target: Target, config: Obj, params: Params, view: View = AS_IS) -> Outcome:
        """Server-side apply of an object or of its status; creates the object if there is none."""
        managed.check_options(params, applying=True)
        kind, now_s = target.kind, self.store.clock()
        check_types(kind, config)
        self._fit_name(target, config["metadata"])
        found = self.store.get(kind.name, target.namespace, target.name)
        live = content.from_store(kind, found) if found is not None else None
        if live is None and target.subresource:
            raise not_found(kind.plural, kind.group, target.name)
        if live is None and (uid := config["metadata"].get("uid")):
            mismatch = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise conflict(kind.plural, kind.group, target.name, mismatch)
        obj, entries = managed.apply_config(kind, target.subresource, live, config, params, now_s)
        if live is None:
            return self.create(Target(kind, target.namespace), obj, params, view, entries=entries)
        check_types(kind, obj)
        return self._answer(200, kind, self.replace(target, obj, params, patched=True, entries=entries), view)

    def replace(
        self, target: Target, new: Obj, params: Params, *, patched: bool = False, entries: Objs | None = None
    ) -> Stored:
        """The common end of PUT and PATCH, and of the subresources that change their parent.

        Another uid than the object's is a precondition that fails in a PUT, and a change of what cannot be changed in
        a patch, where only the resourceVersion is looked at before. `entries`: the managers after an apply.
        """
        kind = target.kind
        old = content.from_store(kind, self.store.require(kind.name, target.namespace, target.name).obj)
        meta, old_meta = new["metadata"], old["metadata"]
        wrong_uid = patches.uid_conflict(old, new)
        if wrong_uid and not patched:
            raise conflict(kind.plural, kind.group, target.name, wrong_uid)
        expected_rv = meta.get("resourceVersion") or None
        if expected_rv in (None, "0"):
            expected_rv = None
            if not kind.unconditional_update:
                error = FieldError.invalid("metadata.resourceVersion", 0, "must be specified for an update")
                raise invalid(kind.kind, kind.group, target.name, [error])
        elif expected_rv != old_meta["resourceVersion"]:
            raise conflict(kind.plural, kind.group, target.name, OBJECT_MODIFIED)
        if wrong_uid:
            error = FieldError.invalid("metadata.uid", meta["uid"], IMMUTABLE)
            raise invalid(kind.kind, kind.group, target.name, [error])
        new = content.for_update(kind, target.subresource, new, old, strict=is_strict(params))
        refuse_unless_valid(kind, target.name, content.update_errors(kind, new, old))
        if entries is None:
            entries = managed.entries_of(kind, target.subresource, old, new, params, self.store.clock())
        new = managed.with_entries(new, entries)
        return self.store.update_stored(kind.name, content.to_store(kind, new), expected_rv, dry_run=is_dry_run(params))

    def delete(self, target: Target, options: DeleteOptions) -> Outcome:
        kind = target.kind
        self.admission.delete(kind, target.name)
        stored, gone = self.store.delete_stored(kind.name, target.namespace, target.name, options)
        meta = stored.obj["metadata"]
        if not gone:
            waits = options.propagation == "Foreground" or options.orphan_dependents is False
            return Outcome(202 if waits else 200, stored.raw, meta)
        if kind.returns_deleted:
            return Outcome(200, stored.raw, meta)
        details = {"name": target.name, "kind": kind.plural, "uid": meta["uid"]}
        if kind.group:
            details["group"] = kind.group
        return Outcome(200, success(200, details), meta)

    def delete_collection(self, target: Target, options: DeleteOptions, params: Params) -> Outcome:
        """Deletes what the selectors match; answers with a list of it."""
        kind = target.kind
        if kind.name == "Namespace" or (kind.namespaced and not target.namespace):
            raise method_not_allowed(kind.plural, kind.group, "DELETE")
        page = self._page(target, params)
        deleted = []
        for found in page.items:
            meta = found.obj["metadata"]
            where = meta.get("namespace", ""), meta["name"]
            # An earlier delete of this very call may have taken this one with it.
            if self.store.stored(kind.name, *where) is not None:
                deleted.append(self.store.delete_stored(kind.name, *where, options)[0])
        meta = {"resourceVersion": str(self.store.rv)}
        return Outcome(200, many(kind, deleted, meta, AS_IS, self.store.clock()))

    # -- inside ----------------------------------------------------------------------------------

    def _answer(self, code: int, kind: Kind, stored: Stored, view: View) -> Outcome:
        return Outcome(code, one(kind, stored, view, self.store.clock()), stored.obj["metadata"])

    def _page(self, target: Target, params: Params) -> Page:
        kind = target.kind
        namespace = target.namespace if kind.namespaced and target.namespace else None
        return list_page(self.store, self._snapshots, kind, namespace, selector_of(target, params), params)

    def _fit_namespace(self, target: Target, meta: Obj) -> None:
        """Fill in the namespace of the URL. Raises ApiError 400 if the body names another."""
        if not target.kind.namespaced:
            return
        if meta.setdefault("namespace", target.namespace) != target.namespace:
            if meta["namespace"]:
                raise bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request"
                )
            meta["namespace"] = target.namespace

    def _fit_name(self, target: Target, meta: Obj) -> None:
        """As `_fit_namespace`, and the same for the name."""
        self._fit_namespace(target, meta)
        if meta.setdefault("name", target.name) != target.name:
            raise bad_request(
                f"the name of the object ({meta['name']}) does not match the name on the URL ({target.name})"
            )


def selector_of(target: Target, params: Params) -> Selector | None:
    """What a list, watch or delete-collection request selects. Raises ApiError 400."""
    labels, fields = params.get("labelSelector", ""), params.get("fieldSelector", "")
    if not labels and not fields and not target.name:
        return None
    return selector_for(target.kind, labels, fields, target.name)


def success(code: int, details: Mapping[str, Any] | None = None) -> bytes:
    """A Status that says all is well."""
    status: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        status["details"] = details
    else:
        status["code"] = code
    return orjson.dumps(status)


def delete_options(params: Params, body: Obj) -> DeleteOptions:
    """DeleteOptions from the body; what it leaves unsaid may be said by query parameters.

    Raises ApiError 400 or 422.
    """
    said: Obj = {}
    if "gracePeriodSeconds" in params:
        try:
            said["gracePeriodSeconds"] = int(params["gracePeriodSeconds"])
        except ValueError:
            raise bad_request("gracePeriodSeconds: expected an integer") from None
    if "propagationPolicy" in params:
        said["propagationPolicy"] = params["propagationPolicy"]
    if "orphanDependents" in params:
        said["orphanDependents"] = params["orphanDependents"].lower() in ("true", "1")
    if params.get("dryRun"):
        said["dryRun"] = [params["dryRun"]]
    preconditions = {
        name: params[f"preconditions.{name}"]
        for name in ("uid", "resourceVersion")
        if f"preconditions.{name}" in params
    }
    if preconditions:
        said["preconditions"] = preconditions
    said.update({key: value for key, value in body.items() if value is not None})
    return options_from(said)
