"""The syntax of names, label keys and values, and the names that the server gives.

A checker returns what is wrong, nothing if all is well.

Wording and rules follow upstream: staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go.
The answers are cached: a cluster uses few distinct keys and values, very often.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Container
from functools import lru_cache
from typing import Final

Problems = tuple[str, ...]
Checker = Callable[[str], Problems]

LABEL_MAX: Final = 63
SUBDOMAIN_MAX: Final = 253
PORT_NAME_MAX: Final = 15

SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"  # nothing that spells a word
SUFFIX_LENGTH: Final = 5
_PREFIX_MAX: Final = LABEL_MAX - SUFFIX_LENGTH
_TRIES_MAX: Final = 8

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_QUALIFIED})?"

_LABEL_RE: Final = re.compile(_LABEL)
_LABEL_1035_RE: Final = re.compile(_LABEL_1035)
_SUBDOMAIN_RE: Final = re.compile(_SUBDOMAIN)
_QUALIFIED_RE: Final = re.compile(_QUALIFIED)
_PERCENT: Final = "[0-9]+%"
_PERCENT_RE: Final = re.compile(_PERCENT)
_VALUE_RE: Final = re.compile(_VALUE)
_ENV_RE: Final = re.compile(r"[ -<>-~]+")
_PORT_NAME_RE: Final = re.compile(r"[-a-z0-9]+")


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def _pattern(what: str, pattern: str, *examples: str) -> str:
    shown = "".join(f"'{example}',  or " for example in examples[:-1]) + f"'{examples[-1]}'"
    return f"{what} (e.g. {shown}, regex used for validation is '{pattern}')"


_LABEL_TEXT: Final = _pattern(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_LABEL_1035_TEXT: Final = _pattern(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_PERCENT_TEXT: Final = _pattern(
    "a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%"
)
_SUBDOMAIN_TEXT: Final = _pattern(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_QUALIFIED_TEXT: Final = _pattern(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _QUALIFIED,
    "MyName",
    "my.name",
    "123-abc",
)
_VALUE_TEXT: Final = _pattern(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character",
    _VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_ENV_TEXT: Final = "a valid environment variable name must consist only of printable ASCII characters other than '='"


def _check(text: str, limit: int, pattern: re.Pattern[str], message: str) -> Problems:
    problems = () if len(text) <= limit else (_too_long(limit),)
    return problems if pattern.fullmatch(text) else (*problems, message)


@lru_cache(maxsize=4096)
def dns_label(text: str) -> Problems:
    """An RFC 1123 label: namespaces, containers, volumes."""
    return _check(text, LABEL_MAX, _LABEL_RE, _LABEL_TEXT)


def dns_label_1035(text: str) -> Problems:
    """A label that does not begin with a digit: services."""
    return _check(text, LABEL_MAX, _LABEL_1035_RE, _LABEL_1035_TEXT)


def dns_subdomain(text: str) -> Problems:
    """An RFC 1123 subdomain: the names of most objects."""
    return _check(text, SUBDOMAIN_MAX, _SUBDOMAIN_RE, _SUBDOMAIN_TEXT)


@lru_cache(maxsize=4096)
def qualified_name(text: str) -> Problems:
    """`name` or `prefix/name`: label keys, annotation keys (lower-cased by the caller), finalizers."""
    prefix, slash, name = text.rpartition("/")
    problems: list[str] = []
    if slash:
        if "/" in prefix:
            return (
                "a qualified name "
                + _QUALIFIED_TEXT
                + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
            )
        if not prefix:
            problems.append("prefix part must be non-empty")
        else:
            problems += ["prefix part " + problem for problem in dns_subdomain(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > LABEL_MAX:
        problems.append("name part " + _too_long(LABEL_MAX))
    if not _QUALIFIED_RE.fullmatch(name):
        problems.append("name part " + _QUALIFIED_TEXT)
    return tuple(problems)


@lru_cache(maxsize=4096)
def label_value(text: str) -> Problems:
    """The value of a label, which may be empty."""
    return _check(text, LABEL_MAX, _VALUE_RE, _VALUE_TEXT)


@lru_cache(maxsize=4096)
def env_name(text: str) -> Problems:
    """The name of an environment variable (upstream: IsRelaxedEnvVarName)."""
    return () if _ENV_RE.fullmatch(text) else (_ENV_TEXT,)


def port_name(text: str) -> Problems:
    """The name of a container's or service's port (upstream: IsValidPortName)."""
    problems: list[str] = []
    if len(text) > PORT_NAME_MAX:
        problems.append(f"must be no more than {PORT_NAME_MAX} characters")
    if not _PORT_NAME_RE.fullmatch(text):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= letter <= "z" for letter in text):
        problems.append("must contain at least one letter (a-z)")
    if "--" in text:
        problems.append("must not contain consecutive hyphens")
    if text[:1] == "-" or text[-1:] == "-":
        problems.append("must not begin or end with a hyphen")
    return tuple(problems)


def generated_prefix(text: str, check: Checker) -> Problems:
    """A generateName under the rule `check` of full names; a dash at its end is allowed for.

    Upstream: apimachinery/pkg/api/validation/generic.go, maskTrailingDash.
    """
    if len(text) > 1 and text.endswith("-"):
        text = text[:-2] + "a"
    return check(text)


def percentage(text: str) -> Problems:
    """A share such as `10%`."""
    return () if _PERCENT_RE.fullmatch(text) and text.isascii() else (_PERCENT_TEXT,)


def path_segment(text: str) -> Problems:
    """What can stand in a path: roles and their bindings may have colons (upstream: IsValidPathSegmentName)."""
    if text in (".", ".."):
        return (f"may not be '{text}'",)
    return tuple(f"may not contain '{part}'" for part in ("/", "%") if part in text)


class Naming:
    """Names and uids that the server gives (upstream: staging/src/k8s.io/apiserver/pkg/storage/names/generate.go).

    Draws from a generator of its own; `seed` None: a different one each time.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)

    def uid(self) -> str:
        """A version 4 UUID; formatted by hand, for this is done for every pod."""
        digits = f"{self._random.getrandbits(128):032x}"
        variant = "89ab"[int(digits[16], 16) & 3]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    def name(self, prefix: str, taken: Container[str]) -> str:
        """`prefix`, cut if need be, and a suffix; after a few tries it may still be one that is taken."""
        name = ""
        for _ in range(_TRIES_MAX):
            suffix = "".join(self._random.choices(SUFFIX_ALPHABET, k=SUFFIX_LENGTH))
            name = prefix[:_PREFIX_MAX] + suffix
            if name not in taken:
                break
        return name
