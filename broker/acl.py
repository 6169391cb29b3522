"""The Redis users of a fleet, in one place: the embedded server and a production server get the same lines.

Scripts run with the rights of their caller, so whoever may EVALSHA also needs the commands inside. What sets the users
apart is who may bring code into the server (the ingestor, SCRIPT LOAD only), whose keys they touch, and who may only
look. All rules are understood by Redis 6.2 and later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

_DATA = "+@read +@write +@connection +@transaction"
_NO_HARM = "-@dangerous -@scripting"  # FLUSHALL, KEYS, CONFIG, ...; EVAL, FUNCTION, FCALL
_CLIENT = "+client|setname +client|getname +client|id +client|list +client|info"

USERS: Mapping[str, str] = {
    "ingestor": f"~oarlock:* resetchannels -@all {_DATA} {_NO_HARM} +evalsha +script|load +script|exists +time +info"
    f" {_CLIENT}",
    "worker": f"~oarlock:* ~rq:* resetchannels &rq:* -@all {_DATA} +@pubsub {_NO_HARM} +evalsha +time +info {_CLIENT}",
    "metrics": "~oarlock:* ~rq:* resetchannels -@all +@read +@connection -@dangerous +time +info +memory|usage"
    f" {_CLIENT}",
    "admin": "~* &* +@all",
}
"""User -> rules after its password.

ingestor: mints epochs, loads scripts, writes the cache. worker (and supervisor): EVALSHA of what is loaded, and RQ's
own keys. metrics: reads. admin: everything; for people and chaos tools.
"""


def acl_file(passwords: Mapping[str, str]) -> str:
    """The text of an ACL file with these users and the default user off. Passwords are stored as SHA-256 only.

    ``passwords`` has one for each of ``USERS``; raises KeyError where one is missing.
    """
    lines = ["user default off resetpass resetkeys resetchannels -@all"]
    for user, rules in USERS.items():
        digest = hashlib.sha256(passwords[user].encode()).hexdigest()
        lines.append(f"user {user} on #{digest} {rules}")
    return "\n".join(lines) + "\n"
