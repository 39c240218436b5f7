import test from 'ava'
import {
  loadSettings,
  productionFailures,
} from '../../../runtime/process/configuration/load-settings.js'
import { requirements } from '../../../runtime/process/production.js'

/** A configuration that production accepts. */
const accepted: Readonly<Record<string, string>> = {
  SVC_SECURITY__PRODUCTION: 'true',
  SVC_KMS__SOCKET_PATH: '/run/svc/kms.sock',
  SVC_KMS__SERVER_PUBLIC_KEY_PATH: '/etc/svc/kms.public',
  SVC_KMS__CLIENT_PRIVATE_KEY_PATH: '/etc/svc/kms.private',
  SVC_SERVER__TRANSPORT: 'tls',
  SVC_SERVER__TLS__CERT_PEM_PATH: '/etc/svc/cert.pem',
  SVC_SERVER__TLS__KEY_PEM_PATH: '/etc/svc/key.pem',
  SVC_SERVER__ALLOWED_HOSTS: 'id.example.com',
  SVC_SERVER__TRUSTED_PROXIES: '10.0.0.0/8',
  DATABASE_URL: 'postgres://svc:hunter2@db/svc?sslmode=verify-full',
  DATABASE_IDENTITY_URL: 'postgres://svc@db/svc?sslmode=require',
  DATABASE_LISTENER_URL: 'postgres://svc@db/svc?sslmode=verify-ca',
  SVC_OIDC__ISSUER_URL: 'https://id.example.com',
  SVC_CHALLENGE__CAPTCHA_ENABLED: 'true',
  SVC_CHALLENGE__CAPTCHA_SECRET: 'captcha-secret',
  SVC_CHALLENGE__HIBP_ENABLED: 'true',
  SVC_EMAIL__PROVIDER: 'smtp',
  SVC_EMAIL__SMTP_HOST: 'mail.example.com',
  SVC_EMAIL__FROM: 'svc@example.com',
  SVC_PHONE__PROVIDER: 'http',
  SVC_PHONE__HTTP_URL: 'https://sms.example.com',
}

const CARD = {
  SVC_COMMERCE__ENABLED: 'true',
  SVC_COMMERCE__CARD__PROVIDER: 'stripe_compatible',
  SVC_COMMERCE__CARD__SECRET_KEY: 'sk_live_1',
  SVC_COMMERCE__CARD__WEBHOOK_SECRET: 'whsec_of_sixteen_characters',
}

/** The environment variable of a key. */
const nameOf = (key: string) => `SVC_${key.replaceAll('.', '__').toUpperCase()}`

type Change = Readonly<Record<string, string | undefined>>

function read(change: Change, toml?: string) {
  const readFile = () => {
    if (toml === undefined) throw Object.assign(new Error('none'), { code: 'ENOENT' })
    return toml
  }
  return loadSettings({ environment: { ...accepted, ...change }, cwd: '/', readFile })
}

function failedKeys(change: Change, toml?: string): string[] {
  const result = read(change, toml)
  return result.tag === 'refused' ? result.failures.map(({ key }) => key) : []
}

test('a configuration that meets every requirement is loaded', (t) => {
  const result = read({})
  t.is(result.tag, 'loaded', JSON.stringify(result))
  if (result.tag === 'loaded') t.deepEqual(productionFailures(result.settings, result.sources), [])
})

const NO_CERTIFICATE = {
  SVC_SERVER__TLS__CERT_PEM_PATH: undefined,
  SVC_SERVER__TLS__KEY_PEM_PATH: undefined,
}
const DATABASE_URLS = { DATABASE_URL: 'postgres://svc@db/svc' }

const PRODUCTION_ROWS = [
  [
    'no [kms]',
    {
      SVC_KMS__SOCKET_PATH: undefined,
      SVC_KMS__SERVER_PUBLIC_KEY_PATH: undefined,
      SVC_KMS__CLIENT_PRIVATE_KEY_PATH: undefined,
    },
    ['kms'],
  ],
  ['plain_http', { SVC_SERVER__TRANSPORT: 'plain_http' }, ['server.transport']],
  ['TLS without a certificate', { ...NO_CERTIFICATE }, ['server.transport']],
  ['a caught mailbox', { SVC_EMAIL__SMTP_CATCHER: 'true' }, ['email.smtp_catcher']],
  ['no allowed hosts', { SVC_SERVER__ALLOWED_HOSTS: '' }, ['server.allowed_hosts']],
  ['no proxies and no exposure', { SVC_SERVER__TRUSTED_PROXIES: '' }, ['server.trusted_proxies']],
  [
    'no request timeout',
    { SVC_SERVER__REQUEST_TIMEOUT_SECS: '0' },
    ['server.request_timeout_secs'],
  ],
  [
    'no shutdown deadline',
    { SVC_SERVER__SHUTDOWN_DEADLINE_SECS: '0' },
    ['server.shutdown_deadline_secs'],
  ],
  ['no identity URL', { DATABASE_IDENTITY_URL: undefined }, ['database.identity_url']],
  ['no listener URL', { DATABASE_LISTENER_URL: undefined }, ['database.listener_url']],
  ['no database URL', { DATABASE_URL: undefined }, ['database.url']],
  ['a database URL without sslmode', DATABASE_URLS, ['database.require_ssl']],
  [
    'sslmode=disable',
    { DATABASE_ASYNC_URL: 'postgres://h/d?sslmode=disable' },
    ['database.require_ssl'],
  ],
  [
    'sslmode=prefer',
    { DATABASE_IDENTITY_URL: 'postgres://h/d?sslmode=prefer' },
    ['database.require_ssl'],
  ],
  [
    'sslmode twice',
    { DATABASE_URL: 'postgres://h/d?sslmode=require&sslmode=disable' },
    ['database.require_ssl'],
  ],
  [
    'a maintenance URL in the clear',
    { MAINTENANCE_DATABASE_URL: 'postgres://h/d' },
    ['database.require_ssl'],
  ],
  [
    'a relay of callbacks',
    {
      SVC_OAUTH_PROXY__ENABLED: 'true',
      SVC_OAUTH_PROXY__RELAY_URL: 'https://staging.example.com',
      SVC_OAUTH_PROXY__SECRET: 'a secret of thirty-two characters',
    },
    ['oauth_proxy.enabled'],
  ],
  ['no issuer', { SVC_OIDC__ISSUER_URL: undefined }, ['oidc.issuer_url']],
  ['an http issuer', { SVC_OIDC__ISSUER_URL: 'http://id.example.com' }, ['oidc.issuer_url']],
  ['an internal OpenAPI document', { SVC_OPENAPI__EXPOSURE: 'internal' }, ['openapi.exposure']],
  [
    'webhooks to any port',
    { SVC_SECURITY__WEBHOOK_ALLOW_NON_STANDARD_PORTS: 'true' },
    ['security.webhook_allow_non_standard_ports'],
  ],
  ['no CAPTCHA', { SVC_CHALLENGE__CAPTCHA_ENABLED: 'false' }, ['challenge.captcha_enabled']],
  [
    'no CAPTCHA secret',
    { SVC_CHALLENGE__CAPTCHA_ENABLED: 'false', SVC_CHALLENGE__CAPTCHA_SECRET: undefined },
    ['challenge.captcha_enabled', 'challenge.captcha_secret'],
  ],
  ['a CAPTCHA that fails open', { SVC_CHALLENGE__FAIL_MODE: 'fail-open' }, ['challenge.fail_mode']],
  ['no breach check', { SVC_CHALLENGE__HIBP_ENABLED: 'false' }, ['challenge.hibp_enabled']],
  ['mail to the log', { SVC_EMAIL__PROVIDER: 'log' }, ['email.provider']],
  ['text messages to the log', { SVC_PHONE__PROVIDER: 'log' }, ['phone.provider']],
  [
    'a CAPTCHA widget without its key',
    { SVC_CHALLENGE__CAPTCHA_PROVIDER: 'turnstile' },
    ['challenge.captcha_site_key'],
  ],
  [
    'NATS without TLS',
    {
      SVC_EVENT_SINKS__NATS__SERVERS: '["nats.internal:4222"]',
      SVC_EVENT_SINKS__NATS__TLS: 'false',
    },
    ['event_sinks.nats.tls'],
  ],
  [
    'Kafka without TLS',
    {
      SVC_EVENT_SINKS__KAFKA__BOOTSTRAP_SERVERS: '["kafka.internal:9092"]',
      SVC_EVENT_SINKS__KAFKA__TLS: 'false',
    },
    ['event_sinks.kafka.tls'],
  ],
  ['SMTP without STARTTLS', { SVC_EMAIL__SMTP_STARTTLS: 'false' }, ['email.smtp_starttls']],
  ['64 MiB less a KiB', { SVC_AUTH__ARGON2_MEMORY_KIB: '65535' }, ['auth.argon2_memory_kib']],
  ['two lanes', { SVC_AUTH__ARGON2_PARALLELISM: '2' }, ['auth.argon2_parallelism']],
  [
    '17 bits of work',
    { SVC_CHALLENGE__POW_DIFFICULTY_BITS: '17' },
    ['challenge.pow_difficulty_bits'],
  ],
  [
    'no floor of time',
    { SVC_CHALLENGE__POW_MIN_DURATION_SECS: '0' },
    ['challenge.pow_min_duration_secs'],
  ],
  [
    'private networks for egress',
    { SVC_VAULT__EGRESS_ALLOW_PRIVATE_NETWORKS: 'true' },
    ['vault.egress_allow_private_networks'],
  ],
  [
    'any port for egress',
    { SVC_VAULT__EGRESS_ALLOW_NON_STANDARD_PORTS: 'true' },
    ['vault.egress_allow_non_standard_ports'],
  ],
  [
    'private networks for webhooks',
    { SVC_WEBHOOKS__ALLOW_PRIVATE_NETWORKS: 'true' },
    ['webhooks.allow_private_networks'],
  ],
  [
    'a test CA for egress',
    { SVC_VAULT__EGRESS_CA_PEM_PATH: 'ca.pem' },
    ['vault.egress_ca_pem_path'],
  ],
  ['a test CA for webhooks', { SVC_WEBHOOKS__CA_PEM_PATH: 'ca.pem' }, ['webhooks.ca_pem_path']],
  [
    'names that are overridden',
    { SVC_VAULT__EGRESS_DNS_OVERRIDES: '{ "a.b" = "127.0.0.1" }' },
    ['vault.egress_dns_overrides'],
  ],
  [
    'throttles turned off',
    { SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'false' },
    ['server.endpoint_throttle.enabled'],
  ],
  [
    'a facilitator over http',
    { SVC_COMMERCE__X402_FACILITATOR_URL: 'http://127.0.0.1:1' },
    ['commerce.x402_facilitator_url'],
  ],
  [
    'a card provider over http',
    { ...CARD, SVC_COMMERCE__CARD__API_BASE_URL: 'http://127.0.0.1:1' },
    ['commerce.card.api_base_url'],
  ],
] as const satisfies readonly (readonly [string, Change, readonly string[]])[]

for (const [title, change, keys] of PRODUCTION_ROWS) {
  test(`production refuses ${title}, and reports only that`, (t) => {
    const result = read(change)
    const failures = result.tag === 'refused' ? result.failures : []
    t.deepEqual(
      failures.map(({ key }) => key),
      [...keys],
    )
    for (const { rule, fix, key, value } of failures) {
      t.true(rule.length > 5 && fix.length > 10, key)
      // A value that was given is shown, without its secrets.
      const given = (change as Change)[nameOf(key)]
      if (given !== undefined && given !== '') t.not(value, undefined, key)
      t.false(`${value}`.includes('hunter2'))
    }
  })
  test(`outside production ${title} is not a production failure`, (t) => {
    const result = read({ ...change, SVC_SECURITY__PRODUCTION: 'false' })
    const failures = result.tag === 'refused' ? result.failures : []
    t.deepEqual(
      failures.filter(({ rule }) => rule.includes('production')),
      [],
    )
  })
}

for (const [title, change] of [
  [
    'direct exposure instead of proxies',
    { SVC_SERVER__TRUSTED_PROXIES: '', SVC_SERVER__DIRECT_CLIENT_EXPOSURE: 'true' },
  ],
  ['require_ssl instead of sslmode', { ...DATABASE_URLS, SVC_DATABASE__REQUIRE_SSL: 'true' }],
  [
    'an internal document that is not served',
    { SVC_OPENAPI__EXPOSURE: 'internal', SVC_OPENAPI__ENABLED: 'false' },
  ],
  ['a CAPTCHA that fails degraded', { SVC_CHALLENGE__FAIL_MODE: 'fail-degraded' }],
  [
    '18 bits and one second',
    { SVC_CHALLENGE__POW_DIFFICULTY_BITS: '18', SVC_CHALLENGE__POW_MIN_DURATION_SECS: '1' },
  ],
  ['TLS with HTTP/2 alone', { SVC_SERVER__TRANSPORT: 'tls_h2_only' }],
  ['no phone provider', { SVC_PHONE__PROVIDER: 'none', SVC_PHONE__HTTP_URL: undefined }],
  ['the default phone provider', { SVC_PHONE__PROVIDER: undefined }],
  ['more memory than 64 MiB', { SVC_AUTH__ARGON2_MEMORY_KIB: '131072' }],
  ['a card provider over https', CARD],
  ['a facilitator over https', { SVC_COMMERCE__X402_FACILITATOR_URL: 'https://x402.example' }],
] as const) {
  test(`production accepts ${title}`, (t) => t.deepEqual(failedKeys(change), []))
}

test('an empty production configuration is refused with every subject', (t) => {
  const result = loadSettings({
    environment: { SVC_SECURITY__PRODUCTION: 'true' },
    cwd: '/nowhere',
  })
  const rules = result.tag === 'refused' ? result.failures.map(({ rule }) => rule).join('\n') : ''
  for (const area of ['Key management', 'Transport', 'Hosts', 'Proxies', 'Database']) {
    t.true(rules.includes(`(production requirement: ${area})`), area)
  }
  const keys = result.tag === 'refused' ? result.failures.map(({ key }) => key) : []
  t.true(keys.includes('oidc.issuer_url'))
  t.true(rules.includes('Abuse controls'))
  t.true(rules.includes('Email and phone'))
})

test('every requirement has a row that breaks it', (t) => {
  const broken = new Set<string>(PRODUCTION_ROWS.flatMap(([, , keys]) => [...keys]))
  // The mailbox breaks another rule too.
  const elsewhere = new Set(['email.dev_mailbox'])
  const without = requirements.map(({ keys }) => keys[0]).filter((key) => !broken.has(key))
  t.deepEqual(
    without.filter((key) => !elsewhere.has(key)),
    [],
  )
})

test('every production requirement says what to change', (t) => {
  const areas = new Set(requirements.map(({ area }) => area))
  for (const area of [
    'Key management',
    'Transport',
    'Hosts',
    'Proxies',
    'Timeouts',
    'Database',
    'OIDC',
    'OpenAPI',
    'OAuth proxy',
    'Webhooks',
    'Abuse controls',
    'Email and phone',
  ]) {
    t.true(areas.has(area), area)
  }
  for (const { fix, keys } of requirements) t.true(fix.length > 10, keys[0])
})

test('a failing database requirement does not print a password', (t) => {
  const result = read({ DATABASE_URL: 'postgres://svc:hunter2@db/svc' })
  t.false(JSON.stringify(result).includes('hunter2'))
})

for (const [key, missing] of [
  ['commerce.card.secret_key', { SVC_COMMERCE__CARD__SECRET_KEY: undefined }],
  ['commerce.card.webhook_secret', { SVC_COMMERCE__CARD__WEBHOOK_SECRET: undefined }],
  ['commerce.card.checkout_hosts', { SVC_COMMERCE__CARD__CHECKOUT_HOSTS: '' }],
  ['commerce.card.provider', { SVC_COMMERCE__ENABLED: 'false' }],
] as const) {
  test(`a card provider without ${key} is refused everywhere`, (t) => {
    for (const production of ['true', 'false']) {
      const change = { ...CARD, ...missing, SVC_SECURITY__PRODUCTION: production }
      t.deepEqual(failedKeys(change), [key])
    }
  })
}

test('the secrets of a card provider are not shown', (t) => {
  const shown = JSON.stringify(read({ ...CARD, SVC_COMMERCE__CARD__API_BASE_URL: 'ftp://x' }))
  t.false(shown.includes('sk_live_1') || shown.includes('whsec_'))
})
