"""Labels and label selectors as one line of text, in the syntax `selectors` reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def labels_text(labels: Mapping[str, str] | None) -> str:
    """`a=1,b=2`; empty for none."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items()))


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """A metav1.LabelSelector (upstream: FormatLabelSelector); empty for one that selects everything."""
    selector = selector or {}
    parts = [labels_text(selector.get("matchLabels"))]
    for term in selector.get("matchExpressions") or ():
        key, operator = term["key"], term["operator"]
        values = ",".join(sorted(term.get("values") or ()))
        parts.append(
            {
                "In": f"{key} in ({values})",
                "NotIn": f"{key} notin ({values})",
                "Exists": key,
                "DoesNotExist": f"!{key}",
            }[operator]
        )
    return ",".join(filter(None, parts))
