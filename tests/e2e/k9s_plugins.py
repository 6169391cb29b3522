"""What k9s does with a file of plugins: the fields that it knows, and how it fills variables in.

Upstream: derailed/k9s, internal/config/json/schemas/plugins.json, internal/view/{env,helpers,actions}.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

FIELDS = {
    **dict.fromkeys(("shortCut", "description", "command"), str),
    **dict.fromkeys(("override", "confirm", "dangerous", "background", "overwriteOutput"), bool),
    **dict.fromkeys(("scopes", "args", "pipes"), list),
}
REQUIRED = {"shortCut", "description", "scopes", "command"}
VARIABLES = {"RESOURCE_GROUP", "RESOURCE_VERSION", "RESOURCE_NAME", "NAMESPACE", "NAME", "CONTEXT", "CLUSTER", "USER"}
_VARIABLE = re.compile(r"\$(!?)([\w-]+)")


def faults(document: Any) -> list[str]:
    """Why k9s would not take the file."""
    if not isinstance(document, dict) or set(document) != {"plugins"}:
        return ["there is one key, plugins"]
    found = []
    for name, plugin in document["plugins"].items():
        found += [f"{name}: no {field}" for field in REQUIRED - set(plugin)]
        found += [f"{name}: unknown {field}" for field in set(plugin) - set(FIELDS)]
        found += [
            f"{name}: {field} is no {FIELDS[field].__name__}"
            for field, value in plugin.items()
            if field in FIELDS and not isinstance(value, FIELDS[field])
        ]
        for each in (*plugin.get("args", ()), *plugin.get("scopes", ())):
            if not isinstance(each, str):
                found.append(f"{name}: {each!r} is no string")
        used = {variable for argument in plugin.get("args", ()) for _, variable in _VARIABLE.findall(str(argument))}
        found += [f"{name}: no variable {variable}" for variable in used - VARIABLES]
    return found


def filled(plugin: Mapping[str, Any], values: Mapping[str, str]) -> list[str]:
    """The command that k9s starts for a row. Raises KeyError for a variable that is not there."""
    return [plugin["command"], *(_VARIABLE.sub(lambda found: values[found[2]], each) for each in plugin["args"])]
