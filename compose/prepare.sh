#!/bin/sh
# Make what compose.yaml needs and must not be shipped with: passwords, the ACL file, a signing key; --tls: certificates.
# What exists is kept. --new: make all of it anew.
set -eu
cd "$(dirname "$0")"
profile=plain new=
for argument in "$@"; do
  case $argument in
    --tls) profile=tls ;;
    --new) new=yes ;;
    *) echo "prepare.sh: $argument is unknown; there are --tls and --new" >&2; exit 2 ;;
  esac
done
command -v openssl >/dev/null || { echo "prepare.sh needs openssl: apt-get install openssl" >&2; exit 2; }
if [ -n "$new" ]; then rm -rf .env secrets; fi
if [ -e .env ]; then
  if ! grep -q "^COMPOSE_PROFILES=$profile" .env; then
    echo "prepare.sh: .env was made for another profile; --new makes it anew, with new passwords" >&2; exit 2
  fi
  echo "kept: .env and secrets/; --new makes them anew"; exit 0
fi
if [ -e secrets ]; then # made with passwords that nobody knows any more, or by a docker that found none to mount
  echo "prepare.sh: secrets/ is there without its .env; --new makes both, and removes what is in it" >&2; exit 2
fi

umask 077
rm -rf secrets.draft .env.draft
mkdir secrets.draft
password() { openssl rand -hex 24; }
hash_of() { printf %s "$1" | sha256sum | cut -d' ' -f1; }
ingestor=$(password) worker=$(password) metrics=$(password) admin=$(password) grafana=$(password)

sed -e "s/<ingestor>/$(hash_of "$ingestor")/" -e "s/<worker>/$(hash_of "$worker")/" \
  -e "s/<metrics>/$(hash_of "$metrics")/" -e "s/<admin>/$(hash_of "$admin")/" \
  redis/users.acl.template >secrets.draft/users.acl
openssl rand -hex 32 >secrets.draft/signing.key

if [ "$profile" = tls ]; then
  (
    cd secrets.draft
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=oarlock-ca \
      -keyout ca.key -out ca.crt
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=redis-tls -keyout redis.key -out redis.csr
    printf 'subjectAltName=DNS:redis-tls,DNS:localhost\n' >redis.ext
    openssl x509 -req -in redis.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 825 -extfile redis.ext -out redis.crt
    rm -f redis.csr redis.ext ca.srl ca.key
  ) 2>/dev/null
fi

{
  echo "COMPOSE_PROJECT_NAME=oarlock"
  echo "COMPOSE_PROFILES=$profile"
  echo "OARLOCK_INGESTOR_PASSWORD=$ingestor"
  echo "OARLOCK_WORKER_PASSWORD=$worker"
  echo "OARLOCK_METRICS_PASSWORD=$metrics"
  echo "OARLOCK_ADMIN_PASSWORD=$admin"
  echo "GRAFANA_ADMIN_PASSWORD=$grafana"
  if [ "$profile" = tls ]; then
    echo "OARLOCK_REDIS_SCHEME=rediss"
    echo "OARLOCK_REDIS_HOST=redis-tls"
    echo "OARLOCK_REDIS_TLS_CA=/etc/oarlock/ca.crt"
  fi
} >.env.draft
# The containers run as user 65532: only it may read, which takes root to arrange; without, others on this machine may too.
if chown -R 65532:65532 secrets.draft 2>/dev/null; then :; else chmod 755 secrets.draft; chmod 644 secrets.draft/*; fi
mv secrets.draft secrets
mv .env.draft .env
echo "made: .env and secrets/ (users.acl, signing.key$([ "$profile" = tls ] && echo ", certificates"))"
