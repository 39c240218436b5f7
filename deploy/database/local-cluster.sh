#!/usr/bin/env bash
# A PostgreSQL cluster on this machine, to try out and test a failover: etcd, three nodes under Patroni, HAProxy and PgBouncer,
# with the files of this folder. Needs the Debian packages etcd-server patroni postgresql haproxy pgbouncer.
#   local-cluster.sh start FOLDER [PORT]   starts it with 20 ports from PORT (default 15400), and prints the URLs
#   local-cluster.sh primary FOLDER        prints the name of the primary
#   local-cluster.sh kill FOLDER NODE      kills every process of a node with SIGKILL, as a power failure does
#   local-cluster.sh crash FOLDER NODE     kills PostgreSQL of a node and leaves Patroni
#   local-cluster.sh freeze|thaw FOLDER NODE   stops and continues PostgreSQL of a node
#   local-cluster.sh join FOLDER NODE      starts a node again
#   local-cluster.sh stop FOLDER           kills everything and removes the folder
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
command=${1:?start, primary, kill, crash, freeze, thaw, join or stop}; folder=${2:?a folder}
password=local-cluster
# The servers refuse to run as root.
as=(); [ "$(id -u)" -ne 0 ] || as=(setpriv --reuid postgres --regid postgres --init-groups)
run() { # name, command...: in a new session
  local name=$1; shift
  cd "$folder"
  "${as[@]}" setsid "$@" >>"$folder/$name.log" 2>&1 </dev/null &
  echo $! >"$folder/$name.pid"
}
pg_pid() { head -1 "$folder/$1/postmaster.pid"; }
# Of a node: the postmaster and its children, each a separate process group.
postgres_of() { local pid; pid=$(pg_pid "$1"); echo "$pid"; pgrep -P "$pid" || true; }
port_of() { echo $((PORT + $1)); }
rest() { curl -s -o /dev/null -m 1 -w '%{http_code}' "http://127.0.0.1:$1/$2" || true; }
wait_for() { # what, command...
  local what=$1 step; shift
  for ((step = 0; step < 600; step++)); do "$@" && return; sleep 0.1; done
  echo "$what did not happen within a minute: see $folder/*.log" >&2; exit 1
}
[ "$command" = start ] || . "$folder/ports"
node_number() { echo "${1#node}"; }
is_primary() { [ "$(rest "$(port_of $((4 + $1)))" primary)" = 200 ]; }
primary() { local n; for n in 1 2 3; do if is_primary "$n"; then echo "node$n"; return; fi; done; return 1; }
is_replica() { [ "$(rest "$(port_of $((4 + $1)))" synchronous)" = 200 ] || [ "$(rest "$(port_of $((4 + $1)))" replica)" = 200 ]; }
join() { run "$1" env PATH="$PATH" patroni "$folder/$1.yml"; }
sql() { PGPASSWORD=$password psql -qAt -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$(port_of 10)" -U postgres -d "$1" -c "$2"; }

case $command in
start)
  PORT=${3:-15400}
  bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)
  mkdir -p "$folder"; chmod 755 "$folder"; echo "PORT=$PORT" >"$folder/ports"
  [ "$(id -u)" -ne 0 ] || chown postgres: "$folder"
  for n in 1 2 3; do
    sed -e "s|NODE|node$n|g; s|REST_PORT|$(port_of $((4 + n)))|g; s|PG_PORT|$(port_of $((1 + n)))|g" \
      -e "s|ETCD_PORT|$(port_of 0)|g; s|FOLDER|$folder|g; s|BIN|$bin|g; s|PASSWORD|$password|g" \
      "$here/patroni.yml" >"$folder/node$n.yml"
  done
  ports=(); for n in 1 2 3; do ports+=(-e "s|PG_PORT_$n|$(port_of $((1 + n)))|; s|REST_PORT_$n|$(port_of $((4 + n)))|"); done
  sed "${ports[@]}" -e "s|PRIMARY_PORT|$(port_of 10)|" "$here/haproxy.cfg" >"$folder/haproxy.cfg"
  sed -e "s|PRIMARY_PORT|$(port_of 10)|; s|POOLER_PORT|$(port_of 11)|; s|FOLDER|$folder|" "$here/pgbouncer.ini" >"$folder/pgbouncer.ini"
  echo "\"svc\" \"$password\"" >"$folder/users.txt"
  etcd=http://127.0.0.1:$(port_of 0); peer=http://127.0.0.1:$(port_of 1)
  run etcd etcd --name svc --data-dir "$folder/etcd" --listen-client-urls "$etcd" --advertise-client-urls "$etcd" \
    --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "svc=$peer" --unsafe-no-fsync
  run haproxy haproxy -db -f "$folder/haproxy.cfg"
  join node1; wait_for 'the first primary' is_primary 1
  join node2; join node3
  wait_for 'the second node' is_replica 2; wait_for 'the third node' is_replica 3
  wait_for 'the address of the primary' sql postgres 'select 1' >/dev/null
  sql postgres "create role svc login nosuperuser nobypassrls password '$password'" 
  sql postgres 'create database svc owner svc'
  run pgbouncer pgbouncer -q "$folder/pgbouncer.ini"
  echo "primary postgres://svc:$password@127.0.0.1:$(port_of 10)/svc"
  echo "pooler postgres://svc:$password@127.0.0.1:$(port_of 11)/svc"
  for n in 1 2 3; do echo "node$n postgres://svc:$password@127.0.0.1:$(port_of $((1 + n)))/svc"; done ;;
primary) primary ;;
kill) node=${3:?a node}; kill -9 "$(cat "$folder/$node.pid")" $(postgres_of "$node") ;;
crash) kill -9 $(postgres_of "${3:?a node}") ;;
freeze) kill -STOP $(postgres_of "${3:?a node}") ;;
thaw) kill -CONT $(postgres_of "${3:?a node}") ;;
join) node=${3:?a node}; rm -f "$folder/$node/postmaster.pid"; join "$node" ;;
stop)
  for name in pgbouncer haproxy node1 node2 node3 etcd; do [ ! -e "$folder/$name.pid" ] || kill -9 "$(cat "$folder/$name.pid")" 2>/dev/null || true; done
  for n in 1 2 3; do [ ! -e "$folder/node$n/postmaster.pid" ] || kill -9 $(postgres_of "node$n") 2>/dev/null || true; done
  rm -rf "$folder" ;;
*) echo "unknown command: $command" >&2; exit 2 ;;
esac
