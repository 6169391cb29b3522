#!/bin/sh
# Print the oldest Python of this machine that is promised to do (3.11 or newer): what works there works on newer ones.
# Distributions have the first releases of a version, Debian 12 for one 3.11.2, and PATH often leads to a later one.
oldest=$(
  for name in python3.11 python3.12 python3.13 python3.14 python3; do
    for place in /usr/bin/ ""; do # "": whichever is first on PATH
      command -v "$place$name" >/dev/null 2>&1 || continue
      "$place$name" -c 'import sys; sys.version_info < (3, 11) or print("%d.%d.%d" % sys.version_info[:3], sys.executable)' \
        2>/dev/null || true
    done
  done | sort -u -V | head -n 1
)
[ -n "$oldest" ] || { echo "oldest_python.sh: there is no Python 3.11 or newer" >&2; exit 2; }
echo "${oldest#* }"
