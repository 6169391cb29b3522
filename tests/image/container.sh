#!/bin/bash
# One container without an engine: a read-only view of this machine's root with some folders laid over it.
# Runs as process 1 of new mount, pid and network namespaces; becomes the command.
#
#   container.sh SPACE ROOT_MODE USER HOSTS [from:to:ro|rw ...] [tmpfs:to] -- COMMAND...
set -euo pipefail
space=$1 mode=$2 user=$3 hosts=$4
shift 4
mount --make-rprivate /
mount -t tmpfs tmpfs "$space"
mkdir "$space/upper" "$space/work" "$space/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$space/upper,workdir=$space/work" "$space/root"
root=$space/root
chmod 755 "$root" # and the way to a Python that only its owner may reach
if [ -d "$root/root" ]; then chmod 755 "$root/root"; fi
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
if [ "$hosts" != - ]; then
  touch "$root/etc/hosts"
  mount --bind "$hosts" "$root/etc/hosts"
fi
while [ "$1" != -- ]; do
  IFS=: read -r from to how <<<"$1"
  mkdir -p "$root$to"
  if [ "$from" = tmpfs ]; then
    mount -t tmpfs -o mode=1777 tmpfs "$root$to"
  else
    mount --bind "$from" "$root$to"
    if [ "$how" = ro ]; then mount -o remount,bind,ro "$root$to"; fi
  fi
  shift
done
shift
if [ "$mode" = ro ]; then mount -o remount,ro "$root"; fi
cd /
if [ "$user" = 0 ]; then exec chroot "$root" "$@"; fi
exec chroot "$root" setpriv --reuid "$user" --regid "$user" --clear-groups --bounding-set=-all --inh-caps=-all \
  --no-new-privs -- "$@"
