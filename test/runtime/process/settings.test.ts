import test from 'ava'
import * as fc from 'fast-check'
import { z } from 'zod'
import type { Failure } from '../../../runtime/kernel/config/outcome.js'
import { tomlLiteral } from '../../../runtime/kernel/config/print.js'
import { type Leaf, leaves, treeOf } from '../../../runtime/kernel/config/tree.js'
import { loadSettings } from '../../../runtime/process/configuration/load-settings.js'
import { assembly } from '../../../runtime/process/configuration/assembly.js'
import type { Settings } from '../../../runtime/process/configuration/settings.js'
import { IS_LONG } from '../../support/runs.js'

const tree = treeOf(assembly)
const every = [...leaves(tree)].map(({ path, leaf }) => ({ key: path.join('.'), leaf }))

function read(environment: Record<string, string>, toml?: string) {
  const readFile = () => {
    if (toml === undefined) throw Object.assign(new Error('none'), { code: 'ENOENT' })
    return toml
  }
  return loadSettings({ environment, cwd: '/', readFile })
}

function settingsOf(environment: Record<string, string>, toml?: string): Settings {
  const result = read(environment, toml)
  if (result.tag === 'refused') throw new Error(JSON.stringify(result.failures))
  return result.settings
}

function failuresOf(environment: Record<string, string>, toml?: string): readonly Failure[] {
  const result = read(environment, toml)
  return result.tag === 'refused' ? result.failures : []
}

const nameOf = (key: string) => `SVC_${key.replace('*', '0').replaceAll('.', '__').toUpperCase()}`

// Every integer of every section, at both ends of its range and one beyond each end.
for (const { key, leaf } of every) {
  const range = integerRange(leaf)
  if (range === undefined) continue
  test(`${key} accepts ${range.min} and ${range.max} and nothing beyond`, (t) => {
    for (const value of [range.min, range.max]) t.false(blames(key, String(value)), `${value}`)
    const beyond = [range.min - 1, range.max + 1, range.min + 0.5]
    for (const value of [...beyond, 'nan', 'inf', 'text', '', '[1]', 'true']) {
      t.true(blames(key, String(value)), `${value}`)
    }
  })
}

for (const [toml, key] of [
  [
    '[jwt]\naccess_token_lifetime_human_secs = 3601\nrefresh_token_lifetime_human_secs = 3600',
    'jwt.refresh_token_lifetime_human_secs',
  ],
  [
    '[jwt]\naccess_token_lifetime_agent_secs = 86400\nrefresh_token_lifetime_agent_secs = 3600',
    'jwt.refresh_token_lifetime_agent_secs',
  ],
  ['[database]\nmin_connections = 21', 'database.min_connections'],
  ['[passkey]\nrp_id = "a.example"\norigins = ["https://b.example"]', 'passkey.rp_id'],
  [
    `[passkey]\norigins = [${['a.co.uk', 'b.de', 'c.de', 'd.de', 'e.de', 'f.de'].map((host) => `"https://id.${host}"`).join()}]`,
    'passkey.origins',
  ],
  ['[database.async_pool]\nmax_connections = 1', 'database.async_pool.min_connections'],
  [
    '[database]\nprepared_statements = "unnamed"\nurl = "postgres://a@b/c"\nmigration_url = "postgres://a@d/c"',
    'database.listener_url',
  ],
  [
    '[database]\nprepared_statements = "unnamed"\nannounce = "table"\nurl = "postgres://a@b/c"',
    'database.migration_url',
  ],
  ['[database]\nurl = "postgres://a@b/c?target_session_attrs=any"', 'database.url'],
  ['[deployment]\ncoordination_backend = "redis"', 'redis.url'],
  ['[deployment]\ncoordination_backend = "redis"\n[redis]\nmode = "sentinel"', 'redis.nodes'],
  ['[deployment]\ncoordination_backend = "memcached"', 'memcached.address'],
  ['[server]\ntransport = "tls_h2_only"', 'server.transport'],
  ['[auth]\nargon2_memory_kib = 8\nargon2_parallelism = 2', 'auth.argon2_memory_kib'],
  ['[challenge]\ncaptcha_enabled = true', 'challenge.captcha_secret'],
  [
    '[challenge]\ncaptcha_enabled = true\ncaptcha_secret = "s"\ncaptcha_provider = "hcaptcha"',
    'challenge.captcha_site_key',
  ],
  [
    '[[chains]]\nid = "solana:mainnet"\nasset = "a"\nasset_name = "b"\nasset_version = "1"',
    'chains.0.id',
  ],
  ['[challenge]\npow_ttl_secs = 2', 'challenge.pow_min_duration_secs'],
  ['[device_authorization]\nttl_secs = 4', 'device_authorization.interval_secs'],
  ['[vault]\nssh_max_validity_secs = 299', 'vault.ssh_default_validity_secs'],
  ['[email]\nprovider = "smtp"\nfrom = "a@b"', 'email.smtp_host'],
  ['[email]\nprovider = "smtp"\nsmtp_host = "m"', 'email.from'],
  ['[phone]\nprovider = "http"', 'phone.http_url'],
  ['[kms]\nsocket_path = "/s"\nserver_public_key_path = "/p"', 'kms.client_private_key_path'],
  ['[server.tls]\ncert_pem_path = "/c"', 'server.tls.key_pem_path'],
] as const) {
  test(`${toml.replaceAll('\n', ' ')} is refused at ${key}`, (t) => {
    t.deepEqual(
      failuresOf({}, toml).map((failure) => failure.key),
      [key],
    )
  })
}

test('a refresh lifetime equal to the access lifetime is enough', (t) => {
  const toml =
    '[jwt]\naccess_token_lifetime_human_secs = 3600\nrefresh_token_lifetime_human_secs = 3600'
  t.is(settingsOf({}, toml).jwt.refresh_token_lifetime_human_secs, 3600)
})

for (const [key, good, bad] of [
  ['jwt.default_algorithm', ['ES256', 'EdDSA'], ['RS256', 'none', 'es256']],
  ['deployment.coordination_backend', ['postgres'], ['etcd', '']],
  ['openapi.exposure', ['public', 'internal'], ['private']],
  ['openapi.docs_path', ['/api/docs', '/d'], ['docs', '/', '/a/', '/a b', '/a?b']],
  ['challenge.fail_mode', ['fail-closed', 'fail-degraded'], ['fail-open']],
  ['server.identity_app_origin', ['', 'https://a.b'], ['https://a.b/', 'a.b', 'ftp://a']],
  ['server.cors_allowed_origins', ['https://a,https://b:1', ''], ['*', 'https://a/b']],
  [
    'server.allowed_hosts',
    ['a.b,[::1]:80', 'localhost'],
    ['https://a', 'a/b', 'a b', 'a:b', '*.a'],
  ],
  ['server.trusted_proxies', ['10.0.0.0/8,::1', 'fd00::/8'], ['10.0.0.0/33', 'proxy', '1.2.3']],
  ['server.base_domain', ['example.com'], ['example.com:80', 'a b', '', '.a']],
  ['server.metrics_bearer_token', ['sixteen letters!'], ['fifteen letters']],
  [
    'oidc.issuer_url',
    ['https://id.example', 'https://a/b'],
    ['https://a/', 'https://u:p@a', 'x', 'https://a?b', 'https://a#', 'ftp://a'],
  ],
  ['database.url', ['postgres://h/d', 'postgresql:///d?host=/s'], ['mysql://h/d', 'h', '']],
  ['redis.url', ['redis://h', 'rediss://:p@h:1/0'], ['http://h', '']],
  ['redis.mode', ['cluster', 'sentinel'], ['replicated', '']],
  ['redis.nodes', ['h:6379', 'h:1,[::1]:2'], ['h', 'redis://h:1', 'u@h:1']],
  ['memcached.address', ['h:11211', '[::1]:11211'], ['h', 'h:', 'memcached://h:1', 'h:1,i:1']],
  ['tenant.default_tenant_slug', ['acme', '123'], ['ab', 'Acme', 'a_b_c']],
  ['tenant_assets.public_base_url', ['https://a'], ['http://a']],
  ['webhooks.retry_schedule_secs', ['0', '0,5'], ['', '-1', 'a']],
  [
    'vault.egress_dns_overrides',
    ['{ "a.b" = "127.0.0.1" }', '{}'],
    ['a', '{ a = "b" }', '{ a = 1 }'],
  ],
  ['email.from', ['a@b.c', 'svc <a@b.c>'], ['a', 'a@b\r\nBcc: c@d']],
  ['server.direct_client_exposure', ['true', 'false'], ['yes', '1', '']],
  ['kms.socket_path', ['/run/s'], ['', 'a\0b']],
  ['chains.*.id', ['eip155:8453'], ['8453', '']],
] as const) {
  test(`${key} accepts valid values and refuses the rest`, (t) => {
    for (const value of good) t.false(blames(key, value), value)
    for (const value of bad) t.true(blames(key, value), value)
  })
}

test('every key has a meaning, words for its values, and a default, fallback or sample', (t) => {
  for (const { key, leaf } of every) {
    t.true(leaf.about.endsWith('.'), key)
    t.true(leaf.words.length > 0, key)
    t.true(leaf.defaultValue !== undefined || leaf.example !== undefined, key)
  }
  for (const [name, node] of tree.children) t.true('about' in node && node.about !== '', name)
})

test('every sample is a valid value, read from the environment', (t) => {
  for (const { key, leaf } of every) {
    if (leaf.example !== undefined) t.false(blames(key, tomlLiteral(leaf.example)), key)
  }
})

test('keys with the name of a secret are hidden', (t) => {
  const named = every.filter(({ key }) => /(secret|password|token|access_key|key_id)$/.test(key))
  t.deepEqual(
    named.filter(({ leaf }) => !leaf.secret).map(({ key }) => key),
    [],
  )
  t.true(named.length >= 5)
})

test('a rule names every key that it reads', (t) => {
  const settings = settingsOf({ DATABASE_URL: 'postgres://h/d' })
  for (const [prefix, rule, root] of rules(settings)) {
    const read = new Set<string>()
    ;(rule.holds as (watched: unknown) => boolean)(watched(root, prefix, read))
    const declared = [
      ...rule.keys.map((key) => (prefix ? `${prefix}.${key}` : key)),
      'security.production',
    ]
    const undeclared = [...read].filter(
      (key) =>
        !declared.some(
          (one) => key === one || one.startsWith(`${key}.`) || key.startsWith(`${one}.`),
        ),
    )
    t.deepEqual(undeclared, [], `${declared[0]}: ${rule.rule}`)
  }
})

const leafName = fc.constantFrom(...every.map(({ key }) => nameOf(key)))
const content = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.constantFrom(
    'true',
    '0',
    '-1',
    '1',
    '[]',
    '{}',
    'http://x',
    'postgres://u:pw@h/d',
    'tls_h2_only',
  ),
  fc.integer().map(String),
)

test('any values of any keys are loaded, or refused with listed failures', (t) => {
  fc.assert(
    fc.property(fc.dictionary(leafName, content, { maxKeys: 12 }), (environment) => {
      const result = read(environment)
      t.true(result.tag === 'loaded' || result.failures.length > 0)
    }),
    { numRuns: IS_LONG ? 500 : 25 },
  )
})

function blames(key: string, value: string): boolean {
  return (
    failuresOf({ [nameOf(key)]: value }).some(
      (failure) => failure.key === key.replace('*', '0') && failure.rule.startsWith('must be '),
    ) && !holdsByItself(key, value)
  )
}

/** True when the value itself is valid and only a rule between keys refused it. */
function holdsByItself(key: string, value: string): boolean {
  const failure = failuresOf({ [nameOf(key)]: value }).find(
    (one) => one.key === key.replace('*', '0'),
  )
  const { leaf } = every.find((one) => one.key === key)!
  return failure !== undefined && failure.rule !== `must be ${leaf.words}`
}

function integerRange(leaf: Leaf): { min: number; max: number } | undefined {
  const { type, minimum, maximum, anyOf } = z.toJSONSchema(leaf.schema, { io: 'input' })
  if (type !== 'integer' || anyOf !== undefined) return undefined
  return { min: minimum!, max: maximum! }
}

function* rules(settings: Settings) {
  for (const { name, rules } of assembly.sections) {
    for (const rule of rules) yield [name, rule, settings[name as keyof Settings]] as const
  }
  for (const rule of assembly.rules) yield ['', rule, settings] as const
}

/** The settings, with a record of the dotted key of every leaf that is read. */
function watched(value: unknown, prefix: string, read: Set<string>): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return new Proxy({ ...value } as Record<string, unknown>, {
    get(target, name) {
      const key = prefix ? `${prefix}.${String(name)}` : String(name)
      const found = target[String(name)]
      const isTable = typeof found === 'object' && found !== null && !Array.isArray(found)
      if (!isTable) read.add(key)
      return watched(found, key, read)
    },
  })
}
