"""Write the ACL file of the fleet's Redis: the users of broker/connection/acl.py with
the passwords INGESTOR_PASSWORD and so on.

In a URL a password stands between signs that have a meaning there, so only letters, digits and . _ ~ - are taken.
"""

import os
import re
import sys

from oarlock.broker.connection.acl import USERS, acl_file

passwords = {user: os.environ.get(f"{user.upper()}_PASSWORD", "") for user in USERS}
for user, password in passwords.items():
    if not re.fullmatch(r"[A-Za-z0-9._~-]{16,}", password):
        sys.exit(
            f"the password of {user} in redis.existingSecret has fewer than 16 signs, or others than letters, digits"
            " and . _ ~ -; make one with: openssl rand -hex 24"
        )
with open(sys.argv[1], "w", encoding="ascii") as file:
    file.write(acl_file(passwords))
