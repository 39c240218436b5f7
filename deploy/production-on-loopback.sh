#!/usr/bin/env bash
# Starts svc in production mode on this machine, from deploy/production.example.toml, with everything that production mode
# requires: a certificate authority, PostgreSQL with TLS, the kms process, and a mail server with STARTTLS.
#
#   deploy/production-on-loopback.sh [--port PORT] [--dir DIR] [--without-service] [-- COMMAND ...]
#
# With COMMAND it runs the command once the service is ready, stops, and exits with the code of the command. Without
# COMMAND it runs until Ctrl-C. --without-service starts PostgreSQL and the mail server alone.
# It needs Node, openssl and the programs of PostgreSQL 15 or newer.
set -euo pipefail

PORT=8443 DIR='' WITH_SERVICE=1
while [ $# -gt 0 ]; do
  case $1 in
    --port) PORT=$2; shift 2 ;;
    --dir) DIR=$2; shift 2 ;;
    --without-service) WITH_SERVICE=; shift ;;
    --) shift; break ;;
    *) echo "unknown option $1" >&2; exit 2 ;;
  esac
done
ROOT=$(cd "$(dirname "$0")/.." && pwd)
SVC=${SVC:-node --require $ROOT/runtime/thread-pool.cjs $ROOT/dist/runtime/main.js}
DB_PORT=$((PORT + 1)) MAIL_PORT=$((PORT + 2))
umask 077
if [ -z "$DIR" ]; then DIR=$(mktemp -d "${TMPDIR:-/tmp}/svc-production-XXXXXX"); else mkdir -p "$DIR"; fi
say() { echo "$*" >&2; }

# PostgreSQL refuses to run as root.
AS=()
if [ "$(id -u)" -eq 0 ]; then
  account=nobody; ! id postgres >/dev/null 2>&1 || account=postgres
  AS=(runuser -u "$account" --)
fi
BIN=$(dirname "$(command -v initdb || ls -d /usr/lib/postgresql/*/bin/initdb | sort -V | tail -n 1)")

pids=()
stop() {
  local index
  for ((index = ${#pids[@]} - 1; index >= 0; index--)); do
    kill -TERM "${pids[index]}" 2>/dev/null || continue
    wait "${pids[index]}" 2>/dev/null || true
  done
  [ ! -e "$DB/postmaster.pid" ] || "${AS[@]}" "$BIN/pg_ctl" -D "$DB" -m fast -w stop >/dev/null 2>&1 || true
  [ "$DB" = "$DIR/postgres" ] || rm -rf "$(dirname "$DB")"
}

# 1. A certificate authority, and certificates for the service, the database and the mail server.
certificate() { # NAME
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$DIR/$1.key" -out "$DIR/$1.csr" \
    -subj /CN=localhost 2>/dev/null
  openssl x509 -req -in "$DIR/$1.csr" -CA "$DIR/ca.pem" -CAkey "$DIR/ca.key" -CAcreateserial -days 30 \
    -out "$DIR/$1.crt" -extfile <(printf 'subjectAltName=DNS:localhost,DNS:*.localhost,IP:127.0.0.1\n') 2>/dev/null
  cat "$DIR/$1.crt" "$DIR/ca.pem" >"$DIR/$1.pem"
}
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -keyout "$DIR/ca.key" \
  -out "$DIR/ca.pem" -subj '/CN=svc on loopback' 2>/dev/null
for name in service database mail; do certificate "$name"; done
# Node and openssl clients, the service among them, trust the authority in addition to the system's.
export NODE_EXTRA_CA_CERTS=$DIR/ca.pem CURL_CA_BUNDLE=$DIR/ca.pem

# 2. PostgreSQL, which accepts connections with TLS only.
DB=$DIR/postgres
# The other account cannot enter the folder.
[ ${#AS[@]} -eq 0 ] || DB=$(mktemp -d /tmp/svc-postgres-XXXXXX)/postgres
trap stop EXIT
mkdir -p "$DB"
if [ ${#AS[@]} -gt 0 ]; then
  cp "$DIR/database.key" "$DIR/database.pem" "$(dirname "$DB")"
  chown -R "$account" "$(dirname "$DB")"
fi
PASSWORD=$(openssl rand -hex 16)
"${AS[@]}" "$BIN/initdb" -D "$DB" --username=postgres --auth=reject --encoding=UTF8 --no-sync >"$DIR/postgres.log"
printf 'local all all reject\nhostssl all all 127.0.0.1/32 scram-sha-256\n' >"$DB/pg_hba.conf"
cat >>"$DB/postgresql.conf" <<END
listen_addresses = '127.0.0.1'
port = $DB_PORT
unix_socket_directories = ''
ssl = on
ssl_cert_file = '$(dirname "$DB")/database.pem'
ssl_key_file = '$(dirname "$DB")/database.key'
max_connections = 100
END
printf "create role svc login password '%s' nosuperuser nobypassrls\ncreate database svc owner svc\n" "$PASSWORD" |
  "${AS[@]}" "$BIN/postgres" --single -D "$DB" postgres >>"$DIR/postgres.log"
"${AS[@]}" "$BIN/pg_ctl" -D "$DB" -w -l "$(dirname "$DB")/server.log" start >>"$DIR/postgres.log"
export DATABASE_URL="postgres://svc:$PASSWORD@localhost:$DB_PORT/svc?sslmode=verify-full&sslrootcert=$DIR/ca.pem"
export DATABASE_IDENTITY_URL=$DATABASE_URL DATABASE_LISTENER_URL=$DATABASE_URL

# 3. A mail server that stores what it receives.
node "$ROOT/deploy/mail-catcher.mjs" "$MAIL_PORT" "$DIR/mail.pem" "$DIR/mail.key" "$DIR/mail" &
pids+=($!)
export SVC_EMAIL__SMTP_HOST=localhost SVC_EMAIL__SMTP_PORT=$MAIL_PORT SVC_EMAIL__SMTP_CA_PEM_PATH=$DIR/ca.pem
export SVC_EMAIL__SMTP_PASSWORD=any

export BASE=https://localhost:$PORT DIR PORT SVC
if [ -n "$WITH_SERVICE" ]; then
  # 4. The kms process and its keys.
  $SVC kms keygen --dir "$DIR/kms" >/dev/null
  $SVC kms serve --keys "$DIR/kms" --socket "$DIR/kms.sock" >"$DIR/kms.log" 2>&1 &
  pids+=($!)

  # 5. The service, with the file of this repository. What differs on loopback is in the environment.
  export SVC_CONFIG_FILE=$ROOT/deploy/production.example.toml
  export SVC_SERVER__HOST=127.0.0.1 SVC_SERVER__PORT=$PORT SVC_SERVER__BASE_DOMAIN=localhost
  export SVC_SERVER__ALLOWED_HOSTS=localhost:$PORT SVC_OIDC__ISSUER_URL=$BASE
  export SVC_SERVER__TLS__CERT_PEM_PATH=$DIR/service.pem SVC_SERVER__TLS__KEY_PEM_PATH=$DIR/service.key
  export SVC_SERVER__TLS__CA_PEM_PATH=$DIR/ca.pem
  export SVC_KMS__SOCKET_PATH=$DIR/kms.sock SVC_KMS__SERVER_PUBLIC_KEY_PATH=$DIR/kms/server.public
  export SVC_KMS__CLIENT_PRIVATE_KEY_PATH=$DIR/kms/client.private
  SVC_CHALLENGE__CAPTCHA_SECRET=$(openssl rand -hex 32); export SVC_CHALLENGE__CAPTCHA_SECRET
  $SVC config check >&2
  $SVC migrate >"$DIR/migrate.log"
  $SVC serve >"$DIR/svc.log" 2>&1 &
  service=$!; pids+=("$service")
  until curl -fsS --max-time 5 "$BASE/health/ready" >/dev/null 2>&1; do
    kill -0 "$service" 2>/dev/null || { tail -n 20 "$DIR/svc.log" >&2; exit 1; }
    sleep 0.2
  done
  say "svc is ready in production mode at $BASE. Its CA is $DIR/ca.pem, its log $DIR/svc.log, mail in $DIR/mail."
fi

if [ $# -gt 0 ]; then "$@"; else
  trap 'exit 0' INT TERM
  while :; do sleep 1; done
fi
