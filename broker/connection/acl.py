"""The users of a fleet's Redis, in one place: the embedded server and a production server get the same lines.

Scripts run with the rights of their caller, so a user who may EVALSHA also needs the commands inside. The users differ
in three things: who may bring code into the server (the ingestor, by SCRIPT LOAD only), which keys they may touch, and
who may only read. Redis 6.2 and later understand all rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

_DATA = "+@read +@write +@connection +@transaction"
_NO_HARM = "-@dangerous -@scripting"  # FLUSHALL, KEYS, CONFIG, ...; EVAL, FUNCTION, FCALL
_LOOK = "+time +info +cluster|slots"
"""INFO tells which life of the data it is, CLUSTER SLOTS which node has them."""
_OWN_ADDRESS = "+client|setname +client|list"
"""RQ's worker finds its own address in the list, by the name that it gives to its connection."""

USERS: Mapping[str, str] = {
    "ingestor": f"~oarlock:* resetchannels -@all {_DATA} {_NO_HARM} +evalsha +script|load {_LOOK}",
    "worker": f"~oarlock:* ~rq:* resetchannels &rq:* -@all {_DATA} +@pubsub {_NO_HARM} +evalsha {_LOOK} {_OWN_ADDRESS}",
    "metrics": f"~oarlock:* ~rq:* resetchannels -@all +@read +@connection -@dangerous {_LOOK}",
    "admin": "~* &* +@all",
}
"""User -> rules after its password.

ingestor: begins epochs, loads scripts, writes the cache. worker (and supervisor): EVALSHA of what is loaded, and RQ's
own keys. metrics: reads. admin: everything; for people and chaos tools.
"""

SERVERS: Mapping[str, str] = {
    "replica": "resetkeys resetchannels -@all +psync +replconf +ping",
    "sentinel": "resetkeys &* -@all +multi +exec +slaveof +replicaof +ping +subscribe +publish +info +role"
    " +config|rewrite +client|setname +client|kill +script|kill",
}
"""Users of other servers, where there are any (masteruser; sentinel auth-user).

Upstream: the Redis documentation's pages on ACL and on Sentinel.
"""


def acl_file(passwords: Mapping[str, str]) -> str:
    """The text of an ACL file with these users and the default user off. Passwords are stored as SHA-256 only.

    ``passwords`` has one for each of ``USERS``, and for those of ``SERVERS`` there are; raises KeyError where one is
    missing.
    """
    users = {**USERS, **{user: rules for user, rules in SERVERS.items() if user in passwords}}
    lines = ["user default off resetpass resetkeys resetchannels -@all"]
    for user, rules in users.items():
        lines.append(f"user {user} on #{hashlib.sha256(passwords[user].encode()).hexdigest()} {rules}")
    return "\n".join(lines) + "\n"
