/** How the sections hang together: values taken from others, and rules across them. */
import { localOrigin } from '../gateway/settings.js'
import { databaseFallbacks } from './database-fallbacks.js'
import { assemble } from './kernel/config/assemble.js'
import { productionRules } from './production.js'
import { sections } from './settings.js'
import { unavailableRules } from './unavailable.js'

export const assembly = assemble(sections, {
  fallbacks: [
    {
      key: 'oidc.issuer_url',
      reads: ['server.transport', 'server.base_domain', 'server.port', 'security.production'],
      from: 'server.transport, server.base_domain and server.port, outside production',
      value: ({ server, security }) => (security.production ? undefined : localOrigin(server)),
    },
    { key: 'server.egress_url', reads: ['oidc.issuer_url'], value: (s) => s.oidc.issuer_url },
    { key: 'server.errors_base_url', reads: ['oidc.issuer_url'], value: (s) => s.oidc.issuer_url },
    ...databaseFallbacks,
  ],
  rules: [
    {
      keys: ['redis.url', 'deployment.coordination_backend'],
      holds: (s) => s.deployment.coordination_backend !== 'redis' || s.redis.url !== undefined,
      rule: 'be set when deployment.coordination_backend is redis',
      fix: 'set redis.url',
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
    ...unavailableRules,
    ...productionRules,
  ],
})
