"""Where orphans stand in the index, and where an owner finds those that matter to it.

An orphan stands under its namespace, under each of its labels, and, if a pod's name looks like one of ours, under what
comes before the part that we make up. An owner looks where one requirement of its selector sends it, and under the
beginning of its own pods' names, for a name that is borne is not to be chosen. So it finds every orphan that it selects
or whose name it might choose. Both sides are functions of one object alone: nothing has to be kept up when an owner
comes after an orphan or changes its selector, and no order of events can come between them.
"""

from oarlock.controllers.daemonset.names import SUFFIX_CHARS as DAEMON_SUFFIX_CHARS
from oarlock.controllers.objects.model import LabelSelector
from oarlock.controllers.pods.slots import ALPHABET, SUFFIX_CHARS

ANY, ALWAYS = "?", "+"
"""How a word about where to look begins: of all ANY the one that brings the fewest will do; ALWAYS comes on top."""
EITHER = "|"
"""Between places that are looked at together."""
VALUES_MAX = 16
"""Values of an In that are looked at one by one."""

_MADE_UP = frozenset(ALPHABET)
EVERY_OWNER = "all"
"""Index entry that every owner has in the cache, so that a new ingestor can read all owners at one moment."""


def orphan_entry(place: str) -> str:
    """Index entry of what nobody controls: ``place`` is a namespace, or one of those below."""
    return f"orphan={place}"


def places_by_label(namespace: str, labels: dict[str, str]) -> tuple[str, ...]:
    """Index entries of an orphan in a namespace."""
    return (orphan_entry(namespace), *[orphan_entry(_label(namespace, *label)) for label in labels.items()])


def places_by_name(namespace: str, name: str) -> tuple[str, ...]:
    """Index entries of an orphan whose name an owner might choose for a pod."""
    return tuple(
        [
            orphan_entry(_beginning(namespace, name[:-count]))
            for count in (SUFFIX_CHARS, DAEMON_SUFFIX_CHARS)
            if _MADE_UP.issuperset(name[-count:])
        ]
    )


def where_to_look(namespace: str, selector: LabelSelector | None, name_base: str) -> tuple[str, ...]:
    """Words of an owner. ``name_base``: with what the names of its pods begin."""
    by_name = ALWAYS + _beginning(namespace, name_base)
    if selector is None:
        return (by_name,)
    return (*[ANY + EITHER.join(places) for places in _sufficient(namespace, selector)], by_name)


def selected_entries(namespace: str, selector: LabelSelector) -> list[str]:
    """Index entries under which all orphans are that a valid selector selects; others are there too.

    Those of the last label, which in the alphabet is the hash of a Deployment's template after the usual ones.
    """
    sufficient = _sufficient(namespace, selector)
    return [orphan_entry(place) for place in sufficient[max(0, len(selector.match_labels) - 1)]]


def _sufficient(namespace: str, selector: LabelSelector) -> list[list[str]]:
    """Lists of places, under each of which together are all orphans that the selector selects."""
    if selector.error:
        return [[namespace]]
    found = [[_label(namespace, key, value)] for key, value in selector.match_labels.items()]
    for each in selector.expressions:
        if each.operator == "In" and len(each.values) <= VALUES_MAX:
            found.append([_label(namespace, each.key, value) for value in dict.fromkeys(each.values)])
    return found or [[namespace]]


def _label(namespace: str, key: str, value: str) -> str:
    return f"{namespace}/{key}={value}"


def _beginning(namespace: str, base: str) -> str:
    return f"{namespace}/~{base}"  # no key of a label begins so
