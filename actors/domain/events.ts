/** The event catalogue: all types of events in the outbox. Subscriptions to other types are refused. */
import type { AuditParty } from './audit.js'
import type { AgentId, KeyFingerprint, TenantId } from './ids.js'

export const EVENT_CATALOGUE = {
  Authentication: [
    'auth.login.success',
    'auth.login.failure',
    'auth.logout',
    'auth.token.issued',
    'auth.token.revoked',
    'session.logout.undelivered',
  ],
  'MFA and risk': ['auth.mfa.challenge', 'auth.mfa.verify', 'auth.adaptive_mfa.triggered'],
  'Tenant users': [
    'tenant_user.invited',
    'tenant_user.activated',
    'tenant_user.suspended',
    'tenant_user.removed',
  ],
  'API keys': ['api_key.created', 'api_key.rotated', 'api_key.revoked'],
  Administration: [
    'admin.user.created',
    'admin.user.password_reset',
    'admin.user.factors_reset',
    'admin.agent.registered',
    'admin.delegation.revoked',
  ],
  Vault: [
    'vault.credential.created',
    'vault.grant.revoked',
    'vault.credential.accessed',
    'egress.stream.closed',
  ],
  Wallet: ['wallet.tx.signed', 'wallet.tx.rejected', 'wallet.budget.exceeded'],
  Chain: ['chain.ownership.changed', 'chain.reputation.updated', 'chain.metadata.changed'],
  SSO: ['sso.configured', 'sso.login.success', 'sso.login.failed', 'sso.user.provisioned'],
  Organizations: [
    'org.created',
    'org.billing.changed',
    'org.suspended',
    'org.reactivated',
    'org.tenant.suspended',
    'org.tenant.reactivated',
    'org.tenant.transfer_requested',
    'org.tenant.transfer_closed',
    'org.tenant.transferred',
    'org.member.invited',
    'org.member.added',
    'org.member.role_changed',
    'org.member.removed',
  ],
  Security: [
    'security.brute_force.detected',
    'security.client.metadata_changed',
    'security.refresh_token.reuse',
    'security.suspicious_activity',
  ],
  'Commerce payment': [
    'commerce.payment.pending',
    'commerce.payment.succeeded',
    'commerce.payment.failed',
    'commerce.payment.refunded',
  ],
  'Commerce settlement': [
    'commerce.settlement.created',
    'commerce.settlement.held',
    'commerce.settlement.released',
  ],
  'Commerce dispute': ['commerce.dispute.opened', 'commerce.dispute.closed'],
  'Commerce payout': [
    'commerce.payout.submitted',
    'commerce.payout.paid',
    'commerce.payout.failed',
  ],
  'Commerce statement': ['commerce.statement.created'],
  Webhooks: ['webhook.test'],
} as const

export type EventCategory = keyof typeof EVENT_CATALOGUE
export type EventType = (typeof EVENT_CATALOGUE)[EventCategory][number]

export const EVENT_TYPES: readonly EventType[] = Object.values(EVENT_CATALOGUE).flat()

/** Optional features with their own events. */
type EventFeatures = {
  readonly commerce: boolean
  /** Sign-in with identity providers of the deployment or of tenants. */
  readonly sso: boolean
  /** Sign-in with identity providers of tenants. */
  readonly enterpriseSso: boolean
  /** Second factors by risk. */
  readonly adaptiveMfa: boolean
  /** Provisioning by directories. */
  readonly scim: boolean
  /** API keys of tenants. */
  readonly apiKeys: boolean
  /** Plans of organizations. */
  readonly billing: boolean
  /** Wallets of agents. */
  readonly wallet: boolean
  /** Configured chains, whose registries may list agents. */
  readonly chains: boolean
}

/** The event types of a deployment, in catalogue order. */
export function offeredEventTypes(features: EventFeatures): readonly EventType[] {
  return EVENT_TYPES.filter((type) => {
    if (type.startsWith('commerce.')) return features.commerce
    if (type === 'sso.user.provisioned') return features.sso || features.scim
    if (type === 'auth.adaptive_mfa.triggered') return features.adaptiveMfa
    if (type.startsWith('wallet.')) return features.wallet
    if (type.startsWith('chain.')) return features.chains
    if (type.startsWith('api_key.')) return features.apiKeys
    if (type === 'org.billing.changed') return features.billing
    if (type === 'sso.configured') return features.enterpriseSso
    return !type.startsWith('sso.') || features.sso
  })
}

/** An event for the outbox. */
export type NewEvent = {
  readonly id: string
  readonly tenantId: TenantId
  readonly type: EventType
  readonly occurredAt: Date
  readonly data: Record<string, unknown>
  /** Further members of the audit event. Never sent to receivers. */
  readonly audit?: {
    readonly subject?: AuditParty
    readonly actors?: readonly AuditParty[]
    readonly clientId?: string | null
    readonly grantId?: string | null
    readonly delegationId?: string | null
    readonly ip?: string
  }
}

/** The actor and the resource of an event. */
export type EventSubject = {
  readonly actor: { readonly type: string; readonly id: string }
  readonly resource: { readonly type: string; readonly id: string }
  readonly requestId: string | undefined
}

/** The `data` of an event: actor, resource, request id, and public fields of the resource. */
export function eventData(
  { actor, resource, requestId }: EventSubject,
  fields: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return { actor, resource, request_id: requestId ?? null, ...fields }
}

/** admin.agent.registered, with the agent as actor. `id` is the id of the event. */
export function agentRegistered(
  id: string,
  agent: {
    readonly id: AgentId
    readonly tenantId: TenantId
    readonly name: string
    readonly did: string
    readonly fingerprint: KeyFingerprint
    readonly createdAt: Date
  },
  requestId: string | undefined,
): NewEvent {
  const itself = { type: 'agent', id: agent.id }
  return {
    id,
    tenantId: agent.tenantId,
    type: 'admin.agent.registered',
    occurredAt: agent.createdAt,
    data: eventData(
      { actor: itself, resource: itself, requestId },
      { name: agent.name, did: agent.did, key_id: agent.fingerprint },
    ),
  }
}
