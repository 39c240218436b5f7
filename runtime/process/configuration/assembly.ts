/** How sections depend on each other: fallbacks, and rules across sections. */
import { isIP } from 'node:net'
import { hasPhone } from '../../../actors/identity/sign-in/ways/phone/settings.js'
import { defaultEgressUrl, localOrigin } from '../../../gateway/settings.js'
import { assemble, type Fallback } from '../../kernel/config/assemble.js'
import { productionRules } from '../production.js'
import { sections, type Settings } from './settings.js'

/** The URLs of the planes' pools. */
const PLANE_URLS = ['auth_url', 'control_url', 'async_url'] as const

/**
 * Without `database.url` no URL is filled here: the start fills them with the URL of the embedded database. The
 * identity and listener URLs have fallbacks outside production only.
 */
const databaseFallbacks: readonly Fallback<Settings>[] = [
  ...(['identity_url', 'listener_url'] as const).map((name) => ({
    key: `database.${name}`,
    reads: ['database.url', 'security.production'],
    from: 'database.url, outside production',
    value: ({ database, security }: Settings) => (security.production ? undefined : database.url),
  })),
  ...PLANE_URLS.map((name) => ({
    key: `database.${name}`,
    reads: ['database.url', 'deployment.database_topology'],
    from: 'database.url, unless deployment.database_topology is split_by_plane',
    value: ({ database, deployment }: Settings) =>
      deployment.database_topology === 'shared' ? database.url : undefined,
  })),
  {
    key: 'database.migration_url',
    reads: ['database.url'],
    value: ({ database }) => database.url,
  },
  {
    key: 'database.maintenance_url',
    reads: ['database.migration_url'],
    value: ({ database }) => database.migration_url,
  },
]

/** True for an issuer on the developer's own machine. */
export const isLocal = (issuer: string): boolean => {
  const { hostname } = new URL(issuer)
  return /^(?:(?:[a-z0-9-]+\.)*localhost|127\.[0-9.]+|\[::1\])$/.test(hostname)
}

const isDomain = (hostname: string) => isIP(hostname.replace(/^\[|\]$/g, '')) === 0

export const assembly = assemble(sections, {
  fallbacks: [
    {
      key: 'oidc.issuer_url',
      reads: ['server.transport', 'server.base_domain', 'server.port', 'security.production'],
      from: 'server.transport, server.base_domain and server.port, outside production',
      value: ({ server, security }) => (security.production ? undefined : localOrigin(server)),
    },
    {
      key: 'server.egress_url',
      reads: ['oidc.issuer_url', 'server.egress_port', 'server.transport'],
      from: 'oidc.issuer_url and server.egress_port',
      value: (s) => defaultEgressUrl(s.oidc.issuer_url, s.server),
    },
    { key: 'server.errors_base_url', reads: ['oidc.issuer_url'], value: (s) => s.oidc.issuer_url },
    {
      key: 'server.drain_secs',
      reads: ['security.production'],
      from: 'security.production (5 in production, 0 outside of it)',
      value: ({ security }) => (security.production ? 5 : 0),
    },
    ...databaseFallbacks,
    ...(['user_self_service', 'email_otp', 'magic_link', 'invitations'] as const).map((name) => ({
      key: `${name}.enabled`,
      reads: ['security.production'],
      from: 'security.production (on outside production, off in it)',
      value: ({ security }: Settings) => !security.production,
    })),
    {
      key: 'user_self_service.sign_up_default',
      reads: ['security.production'],
      from: 'security.production (on outside production, off in it)',
      value: ({ security }) => !security.production,
    },
    {
      key: 'openapi.exposure',
      reads: ['security.production'],
      from: 'security.production (internal outside production, public in it)',
      value: ({ security }) => (security.production ? 'public' : 'internal'),
    },
    {
      key: 'email.dev_mailbox',
      reads: ['security.production', 'email.provider', 'email.smtp_catcher', 'oidc.issuer_url'],
      from: 'security.production (on for a local issuer outside production whose mail stays there)',
      value: ({ security, email, oidc }) =>
        !security.production &&
        (email.provider === 'log' || email.smtp_catcher) &&
        isLocal(oidc.issuer_url),
    },
    {
      key: 'passkey.enabled',
      reads: ['security.production', 'oidc.issuer_url'],
      from: 'security.production (on outside production where the issuer is a name, off in it)',
      // A passkey belongs to a domain, never to an IP address (WebAuthn section 5.1.3).
      value: ({ security, oidc }) =>
        !security.production && isDomain(new URL(oidc.issuer_url).hostname),
    },
  ],
  rules: [
    ...PLANE_URLS.map((name) => ({
      keys: [`database.${name}`, 'deployment.database_topology'] as const,
      holds: ({ database, deployment }: Settings) =>
        deployment.database_topology === 'shared' || database[name] !== undefined,
      rule: 'be set when deployment.database_topology is split_by_plane',
      fix: `set database.${name}, or deployment.database_topology to shared`,
    })),
    ...(['control_pool', 'async_pool'] as const).map((pool) => ({
      keys: [
        `database.${pool}.max_connections`,
        'database.max_connections',
        'tenant_assets.enabled',
      ] as [string, ...string[]],
      // An upload holds a connection while it waits for another.
      holds: ({ database, tenant_assets: assets }: Settings) =>
        !assets.enabled || (database[pool]?.max_connections ?? database.max_connections) >= 2,
      rule: 'be at least 2 when tenant_assets.enabled is true',
      fix: `raise database.max_connections or database.${pool}.max_connections, or set tenant_assets.enabled to false`,
    })),
    {
      keys: ['email.dev_mailbox', 'email.provider', 'email.smtp_catcher'],
      holds: ({ email }) =>
        !email.dev_mailbox || email.provider === 'log' || email.smtp_catcher === true,
      rule: 'be false unless email.provider is log or email.smtp_catcher is true',
      fix: 'set email.dev_mailbox to false',
    },
    {
      keys: ['sms.enabled', 'phone.enabled', 'phone.provider'],
      holds: (s) => !s.sms.enabled || hasPhone(s.phone),
      rule: 'be false unless phone.enabled is true and phone.provider is not none',
      fix: 'set phone.enabled to true and phone.provider',
    },
    {
      keys: ['redis.url', 'redis.mode', 'deployment.coordination_backend'],
      holds: ({ deployment, redis }) =>
        deployment.coordination_backend !== 'redis' ||
        redis.mode !== 'single' ||
        redis.url !== undefined,
      rule: 'be set when deployment.coordination_backend is redis and redis.mode is single',
      fix: 'set redis.url, or redis.mode and redis.nodes',
    },
    {
      keys: ['redis.nodes', 'redis.mode', 'deployment.coordination_backend'],
      holds: ({ deployment, redis }) =>
        deployment.coordination_backend !== 'redis' ||
        redis.mode === 'single' ||
        redis.nodes.length > 0,
      rule: 'not be empty when redis.mode is cluster or sentinel',
      fix: 'list nodes of the cluster, or the Sentinels, in redis.nodes',
    },
    {
      keys: ['memcached.address', 'deployment.coordination_backend'],
      holds: (s) =>
        s.deployment.coordination_backend !== 'memcached' || s.memcached.address !== undefined,
      rule: 'be set when deployment.coordination_backend is memcached',
      fix: 'set memcached.address',
    },
    {
      keys: ['commerce.x402_facilitator_url', 'commerce.x402_enabled'],
      holds: ({ commerce }) =>
        !commerce.x402_enabled || commerce.x402_facilitator_url !== undefined,
      rule: 'be set when commerce.x402_enabled is true',
      fix: 'set commerce.x402_facilitator_url',
    },
    {
      keys: ['deployment.embedded_chain_monitor', 'chains'],
      holds: ({ deployment, chains }) =>
        !deployment.embedded_chain_monitor || chains.some(({ rpc_url }) => rpc_url !== undefined),
      rule: 'be false unless a chain of [[chains]] has an rpc_url',
      fix: 'set rpc_url of the chains to watch',
    },
    {
      keys: ['chains'],
      holds: ({ chains }) =>
        chains.every(
          ({ rpc_url, identity_registry: identity, reputation_registry: reputation }) =>
            (identity === undefined && reputation === undefined) ||
            (identity !== undefined && rpc_url !== undefined),
        ),
      rule: 'have an rpc_url for each identity_registry, and an identity_registry for each reputation_registry',
      fix: 'set rpc_url and identity_registry of the chain',
    },
    {
      keys: ['chains'],
      holds: ({ chains }) => {
        const networks = chains.flatMap(({ id, identity_registry: registry }) =>
          registry === undefined ? [] : [id],
        )
        return new Set(networks).size === networks.length
      },
      rule: 'have one identity_registry per chain',
      fix: 'remove the other identity_registry of the chain',
    },
    ...productionRules,
  ],
})
