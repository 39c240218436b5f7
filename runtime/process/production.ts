/**
 * The requirements of production mode, one row each (docs/reference/runtime.md). `loadSettings`
 * checks them together with everything else, so that an operator sees all failures together.
 */
import type { SectionRule } from '../kernel/config/section.js'
import type { Settings } from './configuration/settings.js'

/** OWASP, and RFC 9106 section 4, second recommended option: 64 MiB, one lane. */
const ARGON2_MEMORY_MIN_KIB = 65_536
/** The lowest difficulty in production. */
const POW_DIFFICULTY_MIN_BITS = 18
const POW_MIN_DURATION_SECS = 1

const ENCRYPTED_SSL_MODES = new Set(['require', 'verify-ca', 'verify-full'])

interface Requirement {
  /** The subject of the requirement. */
  readonly area: string
  readonly keys: readonly [string, ...string[]]
  readonly holds: (settings: Settings) => boolean
  /** As a continuation of "must". */
  readonly rule: string
  readonly fix: string
}

export const requirements: readonly Requirement[] = [
  {
    area: 'Key management',
    keys: ['kms'],
    holds: ({ kms }) => kms !== undefined,
    rule: 'be configured',
    fix: 'set kms.socket_path, kms.server_public_key_path and kms.client_private_key_path',
  },
  {
    area: 'Transport',
    keys: ['server.transport'],
    holds: ({ server }) => server.transport !== 'plain_http',
    rule: 'not be plain_http',
    fix: 'set server.transport to "tls" and give [server.tls]',
  },
  {
    area: 'Hosts',
    keys: ['server.allowed_hosts'],
    holds: ({ server }) => server.allowed_hosts.length > 0,
    rule: 'not be empty',
    fix: 'list the host names that clients use in server.allowed_hosts',
  },
  {
    area: 'Proxies',
    keys: ['server.trusted_proxies', 'server.direct_client_exposure'],
    holds: ({ server }) => server.trusted_proxies.length > 0 || server.direct_client_exposure,
    rule: 'not be empty unless server.direct_client_exposure is true',
    fix: 'list your proxies in server.trusted_proxies, or set server.direct_client_exposure = true',
  },
  {
    area: 'Timeouts',
    keys: ['server.request_timeout_secs'],
    holds: ({ server }) => server.request_timeout_secs > 0,
    rule: 'be greater than 0',
    fix: 'set server.request_timeout_secs, for example to 30',
  },
  {
    area: 'Timeouts',
    keys: ['server.shutdown_deadline_secs'],
    holds: ({ server }) => server.shutdown_deadline_secs > 0,
    rule: 'be greater than 0',
    fix: 'set server.shutdown_deadline_secs, for example to 30',
  },
  ...(['url', 'identity_url', 'listener_url'] as const).map(
    (key): Requirement => ({
      area: 'Database',
      keys: [`database.${key}`],
      holds: ({ database }) =>
        database[key] !== undefined || (key === 'listener_url' && database.announce === 'table'),
      rule: 'be set',
      fix: `set database.${key}; the embedded PostgreSQL and the fallbacks are for local runs`,
    }),
  ),
  {
    area: 'Database',
    keys: [
      'database.require_ssl',
      'database.url',
      'database.identity_url',
      'database.listener_url',
      'database.auth_url',
      'database.control_url',
      'database.async_url',
      'database.migration_url',
      'database.maintenance_url',
    ],
    holds: ({ database }) => database.require_ssl || everyUrl(database).every(isEncrypted),
    rule: 'be true unless every database URL sets sslmode to require, verify-ca or verify-full',
    fix: 'set database.require_ssl = true, or add ?sslmode=verify-full to every database URL',
  },
  {
    area: 'OIDC',
    keys: ['oidc.issuer_url'],
    holds: ({ oidc }) => oidc.issuer_url.startsWith('https://'),
    rule: 'be an https URL',
    fix: 'set oidc.issuer_url to the public https address of the service',
  },
  {
    area: 'OpenAPI',
    keys: ['openapi.exposure', 'openapi.enabled'],
    holds: ({ openapi }) => !openapi.enabled || openapi.exposure === 'public',
    rule: 'be "public" when openapi.enabled is true',
    fix: 'set openapi.exposure to "public", or openapi.enabled to false',
  },
  {
    area: 'OAuth proxy',
    keys: ['oauth_proxy.enabled'],
    holds: ({ oauth_proxy }) => !oauth_proxy.enabled,
    rule: 'be false',
    fix: 'set oauth_proxy.enabled to false',
  },
  {
    area: 'Webhooks',
    keys: ['security.webhook_allow_non_standard_ports'],
    holds: ({ security }) => !security.webhook_allow_non_standard_ports,
    rule: 'be false',
    fix: 'set security.webhook_allow_non_standard_ports to false',
  },
  {
    area: 'Abuse controls',
    keys: ['challenge.captcha_enabled'],
    holds: ({ challenge }) => challenge.captcha_enabled,
    rule: 'be true',
    fix: 'set challenge.captcha_enabled to true and give challenge.captcha_secret',
  },
  {
    area: 'Abuse controls',
    keys: ['challenge.captcha_secret'],
    holds: ({ challenge }) => challenge.captcha_secret !== undefined,
    rule: 'be set',
    fix: 'set SVC_CHALLENGE__CAPTCHA_SECRET',
  },
  {
    area: 'Abuse controls',
    keys: ['challenge.hibp_enabled'],
    holds: ({ challenge }) => challenge.hibp_enabled,
    rule: 'be true',
    fix: 'set challenge.hibp_enabled to true',
  },
  {
    area: 'Email and phone',
    keys: ['email.provider'],
    holds: ({ email }) => email.provider !== 'log',
    rule: 'not be "log"',
    fix: 'set email.provider to "smtp" and give email.smtp_host and email.from',
  },
  {
    area: 'Email and phone',
    keys: ['phone.provider'],
    holds: ({ phone }) => phone.provider !== 'log',
    rule: 'not be "log"',
    fix: 'set phone.provider to http or twilio, or remove it',
  },
  {
    area: 'Email and phone',
    keys: ['email.smtp_catcher'],
    holds: ({ email }) => !email.smtp_catcher,
    rule: 'be false',
    fix: 'set email.smtp_catcher to false and name a mail server that delivers',
  },
  {
    area: 'Email and phone',
    keys: ['email.dev_mailbox'],
    holds: ({ email }) => !email.dev_mailbox,
    rule: 'be false',
    fix: 'set email.dev_mailbox to false: the page shows sign-in codes to everybody',
  },
  {
    area: 'Email and phone',
    keys: ['email.smtp_starttls', 'email.provider'],
    holds: ({ email }) => email.provider !== 'smtp' || email.smtp_starttls,
    rule: 'be true',
    fix: 'set email.smtp_starttls to true',
  },
  {
    area: 'Events',
    keys: ['event_sinks.nats.tls', 'event_sinks.nats.servers'],
    holds: ({ event_sinks: { nats } }) => nats.servers.length === 0 || nats.tls,
    rule: 'be true',
    fix: 'set event_sinks.nats.tls to true',
  },
  {
    area: 'Events',
    keys: ['event_sinks.kafka.tls', 'event_sinks.kafka.bootstrap_servers'],
    holds: ({ event_sinks: { kafka } }) => kafka.bootstrap_servers.length === 0 || kafka.tls,
    rule: 'be true',
    fix: 'set event_sinks.kafka.tls to true',
  },
  {
    area: 'Password hashing',
    keys: ['auth.argon2_memory_kib'],
    holds: ({ auth }) => auth.argon2_memory_kib >= ARGON2_MEMORY_MIN_KIB,
    rule: `be at least ${ARGON2_MEMORY_MIN_KIB} (64 MiB)`,
    fix: `set auth.argon2_memory_kib to ${ARGON2_MEMORY_MIN_KIB}`,
  },
  {
    area: 'Password hashing',
    keys: ['auth.argon2_parallelism'],
    holds: ({ auth }) => auth.argon2_parallelism === 1,
    rule: 'be 1 (one lane)',
    fix: 'set auth.argon2_parallelism to 1',
  },
  {
    area: 'Proof of work',
    keys: ['challenge.pow_difficulty_bits'],
    holds: ({ challenge }) => challenge.pow_difficulty_bits >= POW_DIFFICULTY_MIN_BITS,
    rule: `be at least ${POW_DIFFICULTY_MIN_BITS}`,
    fix: `set challenge.pow_difficulty_bits to ${POW_DIFFICULTY_MIN_BITS} or more`,
  },
  {
    area: 'Proof of work',
    keys: ['challenge.pow_min_duration_secs'],
    holds: ({ challenge }) => challenge.pow_min_duration_secs >= POW_MIN_DURATION_SECS,
    rule: `be at least ${POW_MIN_DURATION_SECS}`,
    fix: `set challenge.pow_min_duration_secs to ${POW_MIN_DURATION_SECS} or more`,
  },
  localOnly('vault.egress_allow_private_networks', (s) => s.vault.egress_allow_private_networks),
  localOnly(
    'vault.egress_allow_non_standard_ports',
    (s) => s.vault.egress_allow_non_standard_ports,
  ),
  localOnly('webhooks.allow_private_networks', (s) => s.webhooks.allow_private_networks),
  localOnly('vault.egress_ca_pem_path', (s) => s.vault.egress_ca_pem_path !== undefined),
  localOnly('webhooks.ca_pem_path', (s) => s.webhooks.ca_pem_path !== undefined),
  localOnly(
    'vault.egress_dns_overrides',
    (s) => Object.keys(s.vault.egress_dns_overrides).length > 0,
  ),
  {
    area: 'Local switches',
    keys: ['server.endpoint_throttle.enabled'],
    holds: ({ server }) => server.endpoint_throttle.enabled,
    rule: 'be true',
    fix: 'remove server.endpoint_throttle.enabled or set it to true',
  },
  {
    area: 'Local switches',
    keys: ['commerce.x402_facilitator_url'],
    holds: ({ commerce }) => commerce.x402_facilitator_url?.startsWith('https:') ?? true,
    rule: 'be an https URL',
    fix: 'set commerce.x402_facilitator_url to an https URL',
  },
  {
    area: 'Local switches',
    keys: ['commerce.card.api_base_url', 'commerce.card.provider'],
    holds: ({ commerce: { card } }) =>
      card.provider === 'none' || card.api_base_url.startsWith('https:'),
    rule: 'be an https URL',
    fix: 'set commerce.card.api_base_url to an https URL',
  },
]

/** The requirements as rules of the assembly. Outside production they always hold. */
export const productionRules: readonly SectionRule<Settings>[] = requirements.map(
  ({ area, keys, holds, rule, fix }) => ({
    keys,
    holds: (settings) => !settings.security.production || holds(settings),
    rule: `${rule} (production requirement: ${area})`,
    fix,
  }),
)

function localOnly(key: string, isUsed: (settings: Settings) => boolean): Requirement {
  return {
    area: 'Local switches',
    keys: [key],
    holds: (settings) => !isUsed(settings),
    rule: 'not be used',
    fix: `remove ${key}; it is for local runs and tests`,
  }
}

function everyUrl(database: Settings['database']): readonly string[] {
  const { url, identity_url, listener_url, auth_url, control_url, async_url } = database
  const { migration_url, maintenance_url } = database
  const urls = [url, identity_url, listener_url, auth_url, control_url, async_url]
  return [...urls, migration_url, maintenance_url].filter((one) => one !== undefined)
}

/** Every sslmode in the URL counts, because drivers differ in which of two they use. */
function isEncrypted(url: string): boolean {
  const modes = new URL(url).searchParams.getAll('sslmode')
  return modes.length > 0 && modes.every((mode) => ENCRYPTED_SSL_MODES.has(mode))
}
