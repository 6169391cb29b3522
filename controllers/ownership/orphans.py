"""Where the index has orphans, and where an owner finds those that matter to it.

The index has an orphan under its namespace and under each of its labels. A pod whose name looks like one of ours stands
also under the beginning of that name, without the part that we generate. An owner looks under one requirement of its
selector, and under the beginning of its own pods' names, since it must not choose a name that is taken. So it finds
every orphan that it selects or whose name it might choose. Both sides are functions of one object: nothing has to be
updated when an owner comes after an orphan or changes its selector, and the order of events does not matter.
"""

from oarlock.controllers.daemonset.names import SUFFIX_CHARS as DAEMON_SUFFIX_CHARS
from oarlock.controllers.objects.model import LabelSelector
from oarlock.controllers.pods.slots import ALPHABET, SUFFIX_CHARS

ANY, ALWAYS = "?", "+"
"""How a word about where to look begins. Of all places with ANY the one with the fewest orphans suffices; places with
ALWAYS are read too."""
EITHER = "|"
"""Between places that are looked at together."""
VALUES_MAX = 16
"""Values of an In that are looked at one by one."""

_MADE_UP = frozenset(ALPHABET)
EVERY_OWNER = "all"
"""Index entry that every owner has in the cache, so that a new ingestor can read all owners at one moment."""


def orphan_entry(place: str) -> str:
    """Index entry of orphans: ``place`` is a namespace, or one of the places below."""
    return f"orphan={place}"


def places_by_label(namespace: str, labels: dict[str, str]) -> tuple[str, ...]:
    """Index entries of an orphan in a namespace."""
    return (orphan_entry(namespace), *[orphan_entry(_label(namespace, *label)) for label in labels.items()])


def labelled_entry(namespace: str, label: tuple[str, ...]) -> str:
    """Index entry of all orphans with a label and its value, or of all, where there is none."""
    return orphan_entry(_label(namespace, *label) if label else namespace)


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
    """An owner's words about where to look. ``name_base``: the beginning of its pods' names."""
    return (*labels_to_look_for(namespace, selector), ALWAYS + _beginning(namespace, name_base))


def labels_to_look_for(namespace: str, selector: LabelSelector | None) -> tuple[str, ...]:
    """The words of an owner whose dependents cannot take the name of another's."""
    if selector is None:
        return ()
    return tuple([ANY + EITHER.join(places) for places in _sufficient(namespace, selector)])


def selected_entries(namespace: str, selector: LabelSelector) -> list[str]:
    """Index entries that together have all orphans which a valid selector selects, and others.

    They are those of the last label: after the usual labels that is the hash of a Deployment's template.
    """
    sufficient = _sufficient(namespace, selector)
    return [orphan_entry(place) for place in sufficient[max(0, len(selector.match_labels) - 1)]]


def entries_to_look_under(namespace: str, selector: LabelSelector, name_base: str) -> list[str]:
    """Index entries that together have all orphans which matter to an owner with a valid selector, and others."""
    return [*selected_entries(namespace, selector), orphan_entry(_beginning(namespace, name_base))]


def _sufficient(namespace: str, selector: LabelSelector) -> list[list[str]]:
    """Lists of places; the places of each list together have all orphans that the selector selects."""
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
