"""Reads the Lua scripts as text: headers, parts, the functions a script reaches, the keys and commands it names.

It relies on how the scripts are written: a function stands at the margin and ends with an "end" at the margin or on its
own line; keys are spelled as ``base .. 'name'`` or, for those of a queue, with a literal that begins with a colon.
"""

from __future__ import annotations

import re
from functools import cache

from oarlock.broker.steps import script_texts

_FUNCTION = re.compile(r"^(?:local function |function \w+\.)(\w+)\(.*?^end$", re.MULTILINE | re.DOTALL)
_ONE_LINE = re.compile(r"^(?:local function |function \w+\.)(\w+)\(.*\bend$", re.MULTILINE)


def code_of(text: str) -> str:
    """Without comments. No literal of ours contains two dashes."""
    return re.sub(r"--[^\n]*", "", text)


def header(name: str) -> dict[str, list[str]]:
    """Header lines by their first word ("KEYS[1]" lines under KEYS, and so on), the rest of the line as value."""
    found: dict[str, list[str]] = {}
    for line in script_texts.source(name).splitlines():
        if not line.startswith("--"):
            break
        words = line[2:].strip()
        first = re.match(r"([A-Za-z_]+)", words)
        if first:
            found.setdefault(first[1], []).append(words[len(first[1]) :].lstrip(": "))
    return found


@cache
def functions(part: str) -> dict[str, str]:
    """Functions at the margin of a part, with their text; "" is the rest."""
    rest, found = code_of(script_texts.source(part)), {}
    for match in list(_ONE_LINE.finditer(rest)):
        found[match[1]] = match[0]
    rest = _ONE_LINE.sub("", rest)
    for match in list(_FUNCTION.finditer(rest)):
        found[match[1]] = match[0]
    found[""] = _FUNCTION.sub("", rest)
    return found


def reached(name: str) -> str:
    """The text of a script and of every function of its parts that it calls, directly or not."""
    known: dict[str, str] = {}
    for part in ("prelude", *script_texts.parts_of(name)):
        known |= {function: text for function, text in functions(f"lib/{part}").items() if function}
    text, queue, seen = "", [code_of(script_texts.source(name))], set()
    while queue:
        body = queue.pop()
        text += body + "\n"
        for function in set(re.findall(r"\b(\w+)\(", body)) & set(known) - seen:
            seen.add(function)
            queue.append(known[function])
    return text


def parts_called(name: str) -> set[str]:
    """Names of the parts of which the script, or a part it reaches, calls a function or reads a constant; and of those
    that such a part includes.
    """
    text = re.sub(r"function [\w.]+\(", "", reached(name))
    found = set()
    for part in script_texts.parts_of(name):
        own = functions(f"lib/{part}")
        called = any(re.search(rf"\b{function}\(", text) for function in own if function)
        if called or any(constant in text for constant in re.findall(r"^local ([A-Z_]+) =", own[""], re.MULTILINE)):
            found |= {part, *script_texts.parts_of(f"lib/{part}")}
    return found


_VARIABLES = {
    "holder": "name",
    "cache": "resource:generation",
    "index": "resource:generation:entry",
    "summary": "resource:generation:entry",
    "apart": "resource:generation",
    "changes": "resource:generation",
    "changes_at": "resource:generation",
    "staging": "resource",
    "unread": "resource",
    "expect": "key",
    "limited": "namespace",
}


def keys_used(name: str) -> set[str]:
    """Names after ``base`` in the form of the DERIVED lines: "leases", "queue:state", "holder:name".

    Not those of which ``check`` only looks at the type: it looks at all of a queue's.
    """
    return keys_in(reached(name).replace(functions("lib/queue")["check"], ""))


def keys_in(text: str) -> set[str]:
    """The keys a piece of Lua names."""
    found = set()
    for literal in re.findall(r"base \.\. '([\w]+):?'", text):
        found.add(f"{literal}:{_VARIABLES[literal]}" if literal in _VARIABLES else literal)
    for literal in re.findall(r"':(\w+):?'", text):
        found.add(f"queue:{literal}:{_VARIABLES[literal]}" if literal in _VARIABLES else f"queue:{literal}")
    return found


def commands_used(name: str) -> set[str]:
    """Redis commands called."""
    return set(re.findall(r"redis\.p?call\('([A-Z]+)'", reached(name)))
