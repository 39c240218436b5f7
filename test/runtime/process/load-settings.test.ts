import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import {
  environmentNames,
  loadSettings,
} from '../../../runtime/process/configuration/load-settings.js'

type Environment = Record<string, string>

/** Files by absolute path. No other file exists. */
function read(environment: Environment, files: Environment = {}, uid?: number) {
  const readFile = (path: string) => {
    const text = files[path]
    if (text === undefined) throw Object.assign(new Error(path), { code: 'ENOENT' })
    return text
  }
  return loadSettings({ environment, cwd: '/srv', readFile, uid })
}

function loaded(environment: Environment, files?: Environment, uid?: number) {
  const result = read(environment, files, uid)
  if (result.tag === 'refused') throw new Error(JSON.stringify(result.failures))
  return result
}

function failuresOf(environment: Environment, files?: Environment) {
  const result = read(environment, files)
  return result.tag === 'refused' ? result.failures : []
}

test('svc.toml of the working directory is read when it is there', (t) => {
  const { settings, file, sources } = loaded({}, { '/srv/svc.toml': '[server]\nport = 1' })
  t.is(settings.server.port, 1)
  t.is(file, 'svc.toml')
  t.deepEqual(sources.get('server.port'), { kind: 'file', path: 'svc.toml', line: 2 })
  t.is(loaded({}).file, undefined)
})

test('what can be turned on and off may be written as its switch', (t) => {
  const of = (environment: Environment, text = '') =>
    loaded(environment, { '/srv/svc.toml': text }).settings.server.endpoint_throttle.enabled
  for (const enabled of [true, false]) {
    t.is(of({}, `[server]\nendpoint_throttle = ${enabled}`), enabled)
    t.is(of({}, `[server.endpoint_throttle]\nenabled = ${enabled}`), enabled)
    t.is(of({ SVC_SERVER__ENDPOINT_THROTTLE: String(enabled) }), enabled)
    t.is(of({ SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: String(enabled) }), enabled)
  }
  const [failure] = failuresOf({}, { '/srv/svc.toml': '[server]\nendpoint_throttle = "yes"' })
  t.is(failure?.key, 'server.endpoint_throttle')
  t.is(failuresOf({}, { '/srv/svc.toml': 'server = true' })[0]?.key, 'server')
})

test('assets need two connections in the control and the async pool', (t) => {
  const assets = { SVC_TENANT_ASSETS__ENABLED: 'true', SVC_TENANT_ASSETS__FOLDER: '/tmp/assets' }
  const keys = (more: Environment) => failuresOf({ ...assets, ...more }).map(({ key }) => key)
  t.deepEqual(keys({}), [])
  const one = { SVC_DATABASE__MAX_CONNECTIONS: '1', SVC_DATABASE__MIN_CONNECTIONS: '0' }
  t.true(keys(one).length > 0)
  for (const pool of ['control', 'async']) {
    const name = `SVC_DATABASE__${pool.toUpperCase()}_POOL__MAX_CONNECTIONS`
    const few = { [name]: '1', SVC_DATABASE__MIN_CONNECTIONS: '0' }
    t.deepEqual(keys(few), [`database.${pool}_pool.max_connections`])
    t.deepEqual(failuresOf(few), [], 'without assets one connection is enough')
    t.deepEqual(keys({ ...few, [name]: '2' }), [])
  }
  t.deepEqual(
    keys({
      ...one,
      SVC_DATABASE__CONTROL_POOL__MAX_CONNECTIONS: '2',
      SVC_DATABASE__ASYNC_POOL__MAX_CONNECTIONS: '2',
    }),
    [],
  )
})

test('SVC_CONFIG_FILE is read instead, relative to the working directory', (t) => {
  const files = { '/srv/svc.toml': 'server.port = 1', '/srv/etc/a.toml': 'server.port = 2' }
  t.is(loaded({ SVC_CONFIG_FILE: 'etc/a.toml' }, files).settings.server.port, 2)
  const elsewhere = { '/etc/b.toml': 'server.port = 3' }
  t.is(loaded({ SVC_CONFIG_FILE: '/etc/b.toml' }, elsewhere).settings.server.port, 3)
})

test('a file that SVC_CONFIG_FILE names must exist', (t) => {
  const [failure] = failuresOf({ SVC_CONFIG_FILE: 'missing.toml' })
  t.is(failure?.key, 'missing.toml')
  t.regex(failure?.rule ?? '', /ENOENT/)
})

test('an unreadable file is reported together with all other failures', (t) => {
  const readFile = () => {
    throw Object.assign(new Error('no'), { code: 'EACCES' })
  }
  const environment = { SVC_SERVER__PORT: 'x' }
  const result = loadSettings({ environment, cwd: '/srv', readFile })
  t.deepEqual(result.tag === 'refused' && result.failures.map(({ key }) => key), [
    'svc.toml',
    'server.port',
  ])
})

test('real files are read from a real directory', (t) => {
  const cwd = mkdtempSync(join(tmpdir(), 'svc-config-'))
  t.teardown(() => rmSync(cwd, { recursive: true }))
  t.is(loadSettings({ environment: {}, cwd }).tag, 'loaded')
  // The first character is the byte order mark that some editors write.
  writeFileSync(join(cwd, 'svc.toml'), '\uFEFF[server]\r\nport = 7\r\n')
  const result = loadSettings({ environment: {}, cwd })
  t.is(result.tag === 'loaded' && result.settings.server.port, 7)
  const directory = loadSettings({ environment: { SVC_CONFIG_FILE: '.' }, cwd })
  t.regex(JSON.stringify(directory), /EISDIR/)
})

for (const [name, key] of Object.entries(environmentNames.shortcuts)) {
  test(`${name} has precedence over the prefixed name of ${key}`, (t) => {
    const prefixed = `SVC_${key.replace('.', '__').toUpperCase()}`
    const { settings, sources } = loaded(
      { [name]: 'postgres://short/d', [prefixed]: 'postgres://long/d' },
      { '/srv/svc.toml': `${key} = "postgres://file/d"` },
    )
    const field = key.split('.')[1] as 'url'
    t.is(settings.database[field], 'postgres://short/d')
    t.deepEqual(sources.get(key), { kind: 'environment', name })
  })
}

test('a database URL fills identity, listener, planes, migration and maintenance', (t) => {
  const { database } = loaded({ DATABASE_URL: 'postgres://h/d' }).settings
  for (const key of [
    'identity_url',
    'listener_url',
    'auth_url',
    'control_url',
    'async_url',
  ] as const) {
    t.is(database[key], 'postgres://h/d', key)
  }
  t.is(database.migration_url, 'postgres://h/d')
  t.is(database.maintenance_url, 'postgres://h/d')
})

test('the maintenance URL falls back to the migration URL first', (t) => {
  const environment = { DATABASE_URL: 'postgres://h/d', MIGRATION_DATABASE_URL: 'postgres://m/d' }
  t.is(loaded(environment).settings.database.maintenance_url, 'postgres://m/d')
})

test('without a database URL all URLs name the embedded database', (t) => {
  const { database } = loaded({}).settings
  t.is(database.url, undefined)
  t.is(database.identity_url, undefined)
  t.is(database.maintenance_url, undefined)
})

test('egress and errors follow the issuer, and the issuer follows the listener', (t) => {
  const issuer = 'https://id.example.com'
  const named = loaded({ SVC_OIDC__ISSUER_URL: issuer }).settings
  t.is(named.server.egress_url, issuer)
  t.is(named.server.errors_base_url, issuer)
  const own = loaded({
    SVC_OIDC__ISSUER_URL: issuer,
    SVC_SERVER__EGRESS_URL: 'https://out.example',
  })
  t.is(own.settings.server.egress_url, 'https://out.example')
  t.is(loaded({ SVC_SERVER__PORT: '9000' }).settings.oidc.issuer_url, 'http://localhost:9000')
  t.is(loaded({ SVC_SERVER__PORT: '80' }).settings.oidc.issuer_url, 'http://localhost')
})

const SPLIT = { SVC_DEPLOYMENT__ALLOW_ALL_IN_ONE_RUNTIME_PLANE: 'false' }

test('a command that serves no requests needs no plane in a split deployment', (t) => {
  const input = { cwd: '/nowhere', servesPlane: false }
  const without = loadSettings({ ...input, environment: SPLIT })
  t.is(without.tag === 'loaded' && without.plane, 'all')
  const named = loadSettings({ ...input, environment: { ...SPLIT, SVC_RUNTIME_PLANE: 'auth' } })
  t.is(named.tag === 'loaded' && named.plane, 'auth')
  const unknown = loadSettings({ ...input, environment: { ...SPLIT, SVC_RUNTIME_PLANE: 'web' } })
  t.is(unknown.tag, 'refused')
})

for (const [title, environment, plane] of [
  ['nothing', {}, 'all'],
  ['all', { SVC_RUNTIME_PLANE: 'all' }, 'all'],
  ['auth', { SVC_RUNTIME_PLANE: 'auth' }, 'auth'],
  ['control', { SVC_RUNTIME_PLANE: 'control' }, 'control'],
  ['async', { SVC_RUNTIME_PLANE: 'async' }, 'async'],
  ['auth of a split deployment', { ...SPLIT, SVC_RUNTIME_PLANE: 'auth' }, 'auth'],
  ['control of a split deployment', { ...SPLIT, SVC_RUNTIME_PLANE: 'control' }, 'control'],
  ['async of a split deployment', { ...SPLIT, SVC_RUNTIME_PLANE: 'async' }, 'async'],
] as const) {
  test(`SVC_RUNTIME_PLANE ${title} serves ${plane}`, (t) => t.is(loaded(environment).plane, plane))
}

for (const [title, environment] of [
  ['nothing in a split deployment', SPLIT],
  ['all in a split deployment', { ...SPLIT, SVC_RUNTIME_PLANE: 'all' }],
  ['an unknown plane', { SVC_RUNTIME_PLANE: 'web' }],
  ['an empty plane', { SVC_RUNTIME_PLANE: '' }],
  ['a plane in capitals', { SVC_RUNTIME_PLANE: 'AUTH' }],
] as const) {
  test(`SVC_RUNTIME_PLANE ${title} is refused`, (t) => {
    const [failure, ...others] = failuresOf(environment)
    t.is(failure?.key, 'SVC_RUNTIME_PLANE')
    t.regex(failure?.fix ?? '', /auth, control or async/)
    t.deepEqual(others, [])
  })
}

test('a missing plane is listed together with other failures', (t) => {
  const keys = failuresOf({ ...SPLIT, SVC_SERVER__PORT: 'x' }).map(({ key }) => key)
  t.deepEqual(keys, ['server.port', 'SVC_RUNTIME_PLANE'])
})

test('the data directory is SVC_DATA_DIR, relative to the working directory', (t) => {
  t.is(loaded({ SVC_DATA_DIR: 'data' }).dataDir, '/srv/data')
  t.is(loaded({ SVC_DATA_DIR: '/srv/svc' }, {}, 0).dataDir, '/srv/svc')
  t.is(failuresOf({ SVC_DATA_DIR: '' })[0]?.key, 'SVC_DATA_DIR')
})

test('without SVC_DATA_DIR it is the state folder of the user, or of the machine for root', (t) => {
  t.is(loaded({ HOME: '/home/ann' }).dataDir, '/home/ann/.local/state/svc')
  t.is(loaded({ HOME: '/home/ann', XDG_STATE_HOME: '/state' }).dataDir, '/state/svc')
  t.is(
    loaded({ HOME: '/home/ann', XDG_STATE_HOME: 'relative' }).dataDir,
    '/home/ann/.local/state/svc',
  )
  t.is(loaded({ HOME: '/root' }, {}, 0).dataDir, '/var/lib/svc')
})

for (const name of [
  'SVC_JWT__PRIVATE_KEY',
  'SVC_JWT__SIGNING_KEY',
  'SVC_VAULT__MASTER_KEY',
  'SVC_VAULT__ENCRYPTION_KEY',
  'SVC_WEBHOOKS__ENCRYPTION_KEY',
  'SVC_SESSION_COOKIE__SECRET',
]) {
  test(`${name} is refused, with the new place of its content, and is not printed`, (t) => {
    const failures = failuresOf({ [name]: 'hunter2' })
    t.is(failures.length, 1)
    t.is(failures[0]?.key, name)
    t.regex(failures[0]?.fix ?? '', /kms/)
    t.false(JSON.stringify(failures).includes('hunter2'))
  })
}

test('object store credentials are refused on the auth plane only', (t) => {
  const environment = {
    SVC_TENANT_ASSETS__ACCESS_KEY_ID: 'id',
    SVC_TENANT_ASSETS__SECRET_ACCESS_KEY: 'hunter2',
  }
  const failures = failuresOf({ ...environment, SVC_RUNTIME_PLANE: 'auth' })
  t.deepEqual(
    failures.map(({ key }) => key),
    ['tenant_assets.access_key_id', 'tenant_assets.secret_access_key'],
  )
  for (const plane of ['all', 'control', 'async']) {
    t.is(loaded({ ...environment, SVC_RUNTIME_PLANE: plane }).tag, 'loaded')
  }
})

test('the other planes need them where assets are in an object store', (t) => {
  const environment = {
    SVC_TENANT_ASSETS__ENABLED: 'true',
    SVC_TENANT_ASSETS__S3_ENDPOINT: 'https://s3.example.com',
    SVC_TENANT_ASSETS__PUBLIC_BASE_URL: 'https://assets.example.com',
    SVC_TENANT_ASSETS__BUCKET: 'svc-assets',
    SVC_TENANT_ASSETS__REGION: 'eu-central-1',
  }
  const keys = (plane: string, more = {}) =>
    failuresOf({ ...environment, ...more, SVC_RUNTIME_PLANE: plane }).map(({ key }) => key)
  const secrets = ['tenant_assets.access_key_id', 'tenant_assets.secret_access_key']
  for (const plane of ['all', 'control', 'async']) t.deepEqual(keys(plane), secrets, plane)
  t.deepEqual(keys('auth'), [])
  t.deepEqual(keys('all', { SVC_TENANT_ASSETS__FOLDER: '/tmp/assets' }), [], 'a folder needs none')
})

test('tenant assets need a store and keep their window', (t) => {
  const keys = (environment: Readonly<Record<string, string>>) =>
    failuresOf(environment).map(({ key }) => key)
  t.deepEqual(
    keys({ SVC_TENANT_ASSETS__ENABLED: 'true' }),
    ['public_base_url', 's3_endpoint', 'bucket', 'region'].map((key) => `tenant_assets.${key}`),
  )
  const folder = { SVC_TENANT_ASSETS__ENABLED: 'true', SVC_TENANT_ASSETS__FOLDER: '/tmp/assets' }
  t.deepEqual(keys(folder), [])
  const days = (count: string) => keys({ ...folder, SVC_TENANT_ASSETS__RETIREMENT_DAYS: count })
  t.deepEqual(days('364'), ['tenant_assets.retirement_days'])
  t.deepEqual(days('730'), [])
})

test('variables of other programs are ignored', (t) => {
  t.is(loaded({ PATH: '/bin', MY_SVC_PORT: '1', SVCPORT: '2' }).tag, 'loaded')
})

for (const mode of ['disable', 'allow', 'prefer']) {
  test(`require_ssl refuses every URL with sslmode=${mode}, the migration URL too`, (t) => {
    const clear = `postgres://svc:hunter2@db/svc?sslmode=${mode}`
    const tls = { DATABASE_URL: 'postgres://svc@db/svc', SVC_DATABASE__REQUIRE_SSL: 'true' }
    t.deepEqual(failuresOf(tls), [])
    for (const [name, key] of Object.entries(environmentNames.shortcuts)) {
      const failures = failuresOf({ ...tls, [name]: clear })
      t.deepEqual(
        failures.map((one) => one.key),
        [key],
        name,
      )
      t.false(JSON.stringify(failures).includes('hunter2'))
      t.deepEqual(failuresOf({ ...tls, [name]: clear, SVC_DATABASE__REQUIRE_SSL: 'false' }), [])
    }
    const socket = `postgres:///svc?host=/run/postgresql&sslmode=${mode}`
    t.deepEqual(failuresOf({ ...tls, MIGRATION_DATABASE_URL: socket }), [])
  })
}

test('sign-in features are on in a local run, and off in production until they are set', (t) => {
  const on = ({ settings }: ReturnType<typeof loaded>) => ({
    passkey: settings.passkey.enabled,
    reset: settings.user_self_service.enabled,
    code: settings.email_otp.enabled,
    invitations: settings.invitations.enabled,
  })
  const all = { passkey: true, reset: true, code: true, invitations: true }
  t.deepEqual(on(loaded({})), all)
  const byAddress = loaded({ SVC_OIDC__ISSUER_URL: 'http://127.0.0.1:8080' })
  t.deepEqual(on(byAddress), { ...all, passkey: false }, 'a passkey belongs to a name')
  t.false(loaded({ SVC_EMAIL_OTP__ENABLED: 'false' }).settings.email_otp.enabled)
  const production = read({ SVC_SECURITY__PRODUCTION: 'true' })
  t.is(production.tag, 'refused')
  for (const key of Object.keys({
    passkey: 1,
    user_self_service: 1,
    email_otp: 1,
    invitations: 1,
  })) {
    const about = failuresOf({ SVC_SECURITY__PRODUCTION: 'true' }).filter((one) =>
      one.key.startsWith(`${key}.`),
    )
    t.deepEqual(about, [], 'production demands none of them')
  }
})
