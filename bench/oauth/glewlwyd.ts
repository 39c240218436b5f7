/**
 * glewlwyd 2, a peer in C: its OpenID Connect plugin with an ES256 key, one client with a plain secret, and SQLite on a file
 * in memory, because glewlwyd needs existing tables and so cannot use `:memory:`.
 * Needs glewlwyd and sqlite3 (Debian: `apt-get install glewlwyd dbconfig-sqlite3`).
 */
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freshKeyPair } from '../../runtime/kernel/key-pair.js'
import { freePort, isInstalled, spentBy } from '../foreign-program.js'
import { pinned } from '../wrk.js'
import { type Hammered, hammer } from './peer-process.js'
import type { Peer } from './protocol.js'

/** The tables of the package. */
const TABLES = '/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3'
const MODULES = '/usr/lib/glewlwyd'
const MEMORY = '/dev/shm'
const SCOPE = 'applications:read'
const START_ATTEMPTS = 100
const START_PAUSE_MS = 100

/** Why it cannot be measured on this machine, or null. */
export function missing(): string | null {
  const program = ['glewlwyd', 'sqlite3'].find((name) => !isInstalled(name))
  if (program !== undefined) return `${program} is not installed`
  const path = [TABLES, MEMORY].find((name) => !existsSync(name))
  return path === undefined ? null : `there is no ${path}`
}

/** Starts it on a free port with a temporary database. */
export async function startGlewlwyd(): Promise<Hammered> {
  const folder = await mkdtemp(join(MEMORY, 'svc-bench-glewlwyd-'))
  const port = await freePort()
  const secret = randomBytes(32).toString('base64url')
  const database = join(folder, 'glewlwyd.db')
  const config = join(folder, 'glewlwyd.conf')
  const filled = spawnSync('sqlite3', ['-bail', database], { input: contents(port, secret) })
  if (filled.status !== 0) throw new Error(`sqlite3: ${String(filled.stderr)}`)
  await writeFile(config, settings(port, folder, database), { mode: 0o600 })

  const [command, ...words] = [...pinned(0), 'glewlwyd', '-c', config]
  const child = spawn(command!, words, { stdio: ['ignore', 'ignore', 'inherit'] })
  const peer: Peer = {
    port,
    credentials: { client_id: 'bench', client_secret: secret },
    tokenPath: '/api/oidc/token',
    introspectionPath: '/api/oidc/introspect',
    clientScope: SCOPE,
  }
  const cpu = async () => spentBy(child.pid!).cpuSeconds
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const gone = once(child, 'exit')
      child.kill('SIGTERM')
      await gone
    }
    await rm(folder, { recursive: true, force: true })
  }
  try {
    const algorithm = await algorithmOfFirstToken(peer, () => child.exitCode !== null)
    if (algorithm !== 'ES256') throw new Error(`glewlwyd signs by ${algorithm}`)
  } catch (error) {
    await stop()
    throw error
  }
  return { peer, hammer: (path, fields, ms) => hammer(port, cpu, path, fields, ms), stop }
}

async function algorithmOfFirstToken(peer: Peer, ended: () => boolean): Promise<string> {
  const fields = { grant_type: 'client_credentials', scope: SCOPE, ...peer.credentials }
  for (let attempt = 0; attempt < START_ATTEMPTS && !ended(); attempt += 1) {
    const answer = await fetch(`http://127.0.0.1:${peer.port}${peer.tokenPath}`, {
      method: 'POST',
      body: new URLSearchParams(fields),
    }).catch(() => null)
    if (answer?.ok) {
      const { access_token } = (await answer.json()) as { access_token: string }
      const header = Buffer.from(access_token.split('.')[0]!, 'base64url').toString()
      return String((JSON.parse(header) as { alg?: string }).alg)
    }
    await sleep(START_PAUSE_MS)
  }
  throw new Error('glewlwyd gives no token')
}

/** The package's tables, the issuing plugin, and the client, as the admin pages would create them. */
function contents(port: number, secret: string): string {
  const { privateKey, publicKey } = freshKeyPair('P-256')
  const plugin = {
    iss: `http://localhost:${port}`,
    'jwt-type': 'ecdsa',
    'jwt-key-size': '256',
    key: privateKey.export({ format: 'pem', type: 'pkcs8' }),
    cert: publicKey.export({ format: 'pem', type: 'spki' }),
    'access-token-duration': 300,
    'refresh-token-duration': 604_800,
    'code-duration': 600,
    'refresh-token-rolling': true,
    'allow-non-oidc': true,
    'auth-type-code-enabled': true,
    'auth-type-token-enabled': false,
    'auth-type-id-token-enabled': true,
    'auth-type-none-enabled': false,
    'auth-type-password-enabled': false,
    'auth-type-client-enabled': true,
    'auth-type-device-enabled': false,
    'auth-type-refresh-enabled': true,
    'subject-type': 'public',
    'introspection-revocation-allowed': false,
  }
  const properties = [
    ['client_secret', secret],
    ['token_endpoint_auth_method', 'client_secret_post'],
    ['authorization_type', 'client_credentials'],
  ]
  const text = (value: string) => `'${value.replaceAll("'", "''")}'`
  return [
    // A quarter faster than SQLite's default, and persistent in the file.
    'pragma journal_mode = wal;',
    readFileSync(TABLES, 'utf8'),
    `insert into g_plugin_module_instance (gpmi_module, gpmi_name, gpmi_parameters)
      values ('oidc', 'oidc', ${text(JSON.stringify(plugin))});`,
    `insert into g_scope (gs_name, gs_password_required) values ('${SCOPE}', 0);`,
    `insert into g_client (gc_id, gc_client_id, gc_confidential) values (1, 'bench', 1);`,
    `insert into g_client_scope (gcs_id, gcs_name) values (1, '${SCOPE}');`,
    'insert into g_client_scope_client (gc_id, gcs_id) values (1, 1);',
    ...properties.map(
      (pair) => `insert into g_client_property (gc_id, gcp_name, gcp_value)
        values (1, ${pair.map((value) => text(value!)).join(', ')});`,
    ),
  ].join('\n')
}

/** The package's sample settings, with only errors logged, as in the other servers. */
function settings(port: number, folder: string, database: string): string {
  return `port=${port}
bind_address="127.0.0.1"
external_url="http://localhost:${port}"
login_url="login.html"
api_prefix="api"
log_mode="file"
log_level="ERROR"
log_file="${folder}/glewlwyd.log"
cookie_domain="localhost"
admin_scope="g_admin"
profile_scope="g_profile"
user_module_path="${MODULES}/user"
client_module_path="${MODULES}/client"
user_auth_scheme_module_path="${MODULES}/scheme"
plugin_module_path="${MODULES}/plugin"
use_secure_connection=false
secure_connection_key_file="${folder}/none.key"
secure_connection_pem_file="${folder}/none.pem"
secure_connection_ca_file="${folder}/none.crt"
hash_algorithm="SHA512"
database = { type = "sqlite3"; path = "${database}" };
`
}
