"""JSON schemas of the custom resources that the chart makes: the part it uses, unknown fields refused.

Source: the CustomResourceDefinitions of KEDA (config/crd/bases/keda.sh_scaledobjects.yaml) and of the Prometheus
operator (example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml, ..._prometheusrules.yaml).
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
DURATION: Schema = {
    "type": "string",
    "pattern": "^(0|([0-9]+y)?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)$",
}
COUNT: Schema = {"type": "integer", "minimum": 0}
TEXTS: Schema = {"type": "object", "additionalProperties": TEXT}


def _of(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": properties,
    }


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items, "minItems": 1}


def _kind(spec: Schema) -> Schema:
    metadata = _of(("name",), name=TEXT, namespace=TEXT, labels=TEXTS, annotations=TEXTS)
    return _of(("apiVersion", "kind", "metadata", "spec"), apiVersion=TEXT, kind=TEXT, metadata=metadata, spec=spec)


_EXPRESSION = _of(("key", "operator"), key=TEXT, operator=TEXT, values=_list(TEXT))
_SELECTOR = _of(matchLabels=TEXTS, matchExpressions=_list(_EXPRESSION))
_RULE = _of(
    ("expr",),
    alert=TEXT,
    record=TEXT,
    expr={"type": ["string", "integer"]},
    labels=TEXTS,
    annotations=TEXTS,
    **{"for": DURATION, "keep_firing_for": DURATION},
)

SCHEMAS: dict[tuple[str, str], Schema] = {
    ("keda.sh/v1alpha1", "ScaledObject"): _kind(
        _of(
            ("scaleTargetRef", "triggers"),
            scaleTargetRef=_of(("name",), apiVersion=TEXT, kind=TEXT, name=TEXT),
            pollingInterval=COUNT,
            cooldownPeriod=COUNT,
            minReplicaCount=COUNT,
            maxReplicaCount=COUNT,
            triggers=_list(_of(("type", "metadata"), type=TEXT, name=TEXT, metadata=TEXTS)),
        )
    ),
    ("monitoring.coreos.com/v1", "ServiceMonitor"): _kind(
        _of(
            ("endpoints", "selector"),
            selector=_SELECTOR,
            namespaceSelector=_of(matchNames=_list(TEXT)),
            endpoints=_list(_of(("port",), port=TEXT, path=TEXT, interval=DURATION, scrapeTimeout=DURATION)),
        )
    ),
    ("monitoring.coreos.com/v1", "PrometheusRule"): _kind(
        _of(("groups",), groups=_list(_of(("name", "rules"), name=TEXT, interval=DURATION, rules=_list(_RULE))))
    ),
}
