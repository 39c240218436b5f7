/** The files with which a host trusts an SSH certificate authority and follows its revocations. */

/** How often a host asks. With the cache time of the list and a slow request it is less than a minute. */
const INTERVAL_SECS = 20

export type HostPlan = {
  /** The public address of the authority: `https://id.example.com/ssh/{credential_id}`. */
  readonly address: string
  /** The folder that stands for `/`. Paths in the files begin with it. */
  readonly root: string
  /** A PEM file of the CA of the service. Null: the host knows it. */
  readonly caFile: string | null
}
export type HostFile = { readonly path: string; readonly mode: number; readonly text: string }
export type HostPaths = ReturnType<typeof hostPaths>

export const TIMER = 'svc-ssh-refresh.timer'

/** @param root the folder that stands for `/`. */
export function hostPaths(root: string) {
  const base = root === '/' ? '' : root
  const units = `${base}/etc/systemd/system`
  return {
    folder: `${base}/etc/ssh/svc`,
    signers: `${base}/etc/ssh/svc/allowed_signers`,
    keys: `${base}/etc/ssh/svc/ca.pub`,
    list: `${base}/etc/ssh/svc/krl`,
    config: `${base}/etc/ssh/sshd_config`,
    part: `${base}/etc/ssh/sshd_config.d/10-svc.conf`,
    parts: `${base}/etc/ssh/sshd_config.d/*.conf`,
    refresh: `${base}/usr/local/sbin/svc-ssh-refresh`,
    service: `${units}/svc-ssh-refresh.service`,
    timer: `${units}/${TIMER}`,
  }
}

/** Everything except `sshd_config`, which belongs to the host. */
export function hostFiles(plan: HostPlan): readonly HostFile[] {
  const paths = hostPaths(plan.root)
  return [
    { path: paths.refresh, mode: 0o755, text: refreshScript(plan, paths) },
    { path: paths.service, mode: 0o644, text: serviceUnit(paths) },
    { path: paths.timer, mode: 0o644, text: TIMER_UNIT },
    {
      path: paths.part,
      mode: 0o644,
      text: `# Written by svc ssh host-setup.\nTrustedUserCAKeys ${paths.keys}\nRevokedKeys ${paths.list}\n`,
    },
  ]
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** A file is replaced only when its signature is right, and a list only by a newer one. */
function refreshScript({ address, caFile }: HostPlan, { folder }: HostPaths): string {
  const trust = caFile === null ? '' : ` --cacert ${quoted(caFile)}`
  return `#!/bin/sh
# Written by svc ssh host-setup. Fetches the revocation list and the keys of an SSH certificate authority.
set -eu
LC_ALL=C
export LC_ALL
umask 022
address=${quoted(address)}
folder=${quoted(folder)}

fail() {
  echo "svc-ssh-refresh: $1" >&2
  exit 1
}

# The status of a file, which is then in NAME.new, with its header in NAME.head.
fetch() {
  curl -sS --max-time 10${trust} -o "$folder/$1.new" -D "$folder/$1.head" -w '%{http_code}' \\
    -H "If-None-Match: $2" "$address/$1"
}

version() {
  od -An -tx1 -j12 -N8 "$1" | tr -d ' \\n'
}

refresh() {
  tag='"none"'
  if [ -s "$folder/$1" ] && [ -s "$folder/$1.etag" ]; then tag=$(cat "$folder/$1.etag"); fi
  for attempt in 1 2 3; do
    status=$(fetch "$1" "$tag") || fail "$1: the service does not answer"
    [ "$status" != 304 ] || return 0
    [ "$status" = 200 ] || fail "$1: status $status"
    status=$(fetch "$1.sig" '"none"') || fail "$1.sig: the service does not answer"
    [ "$status" = 200 ] || fail "$1.sig: status $status"
    # A change between the two requests gives a file and the signature of the next one.
    ssh-keygen -Y verify -f "$folder/allowed_signers" -I svc -n "$2" -s "$folder/$1.sig.new" \\
      <"$folder/$1.new" >/dev/null 2>&1 || continue
    if [ "$1" = krl ] && [ -s "$folder/krl" ]; then
      if expr "v$(version "$folder/krl.new")" '<' "v$(version "$folder/krl")" >/dev/null; then
        fail 'krl: the service has an older list'
      fi
    fi
    sed -n 's/^[Ee][Tt][Aa][Gg]: *//p' "$folder/$1.head" | tr -d '\\r' >"$folder/$1.tag"
    chmod 644 "$folder/$1.new"
    mv -f "$folder/$1.new" "$folder/$1"
    mv -f "$folder/$1.tag" "$folder/$1.etag"
    return 0
  done
  fail "$1: the signature is not of $folder/allowed_signers"
}

refresh krl svc-krl
refresh ca.pub svc-ca
rm -f "$folder"/*.new "$folder"/*.head
`
}

function serviceUnit({ refresh, folder }: HostPaths): string {
  return `[Unit]
Description=Refresh the revocation list of the SSH certificate authority of svc
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
ExecStart=${refresh}
TimeoutStartSec=35
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
ReadWritePaths=${folder}
`
}

const TIMER_UNIT = `[Unit]
Description=Refresh the revocation list of the SSH certificate authority of svc

[Timer]
OnBootSec=1s
OnUnitActiveSec=${INTERVAL_SECS}s
AccuracySec=1s

[Install]
WantedBy=timers.target
`
