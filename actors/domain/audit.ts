/** Audit events: the action, the actors, and the subject on whose behalf they act. */
import type { DelegationIntent } from './agents/delegation-intent.js'
import type { Principal } from './principal.js'

export type AuditOutcome = 'success' | 'failure' | 'denied'
/** A principal with the names of token claims. */
export type AuditParty = { readonly sub: string; readonly subject_type: string }
export type AuditResource = { readonly type: string; readonly id: string }

/** Actions that are audited without a webhook event. All events of the catalogue are audited as well. */
export const AUDIT_ONLY_TYPES = [
  'account.email.verified',
  'account.password.changed',
  'account.password.reset',
  'account.phone.removed',
  'account.phone.verified',
  'account.profile.updated',
  'account.identity.linked',
  'account.identity.unlinked',
  'account.recovery_codes.replaced',
  'account.wallet.linked',
  'account.wallet.removed',
  'admin.access_policy.created',
  'admin.access_policy.deleted',
  'admin.access_policy.updated',
  'admin.account.reactivated',
  'admin.account.recovery_issued',
  'admin.account.recovered',
  'admin.account.suspended',
  'admin.agent.activated',
  'admin.agent.anchor.revoked',
  'admin.agent.deleted',
  'admin.agent.key.added',
  'admin.agent.key.deprecated',
  'admin.agent.key.revoked',
  'admin.agent.suspended',
  'admin.agent.updated',
  'admin.connector.created',
  'admin.connector.deleted',
  'admin.connector.updated',
  'admin.credential.revoked',
  'admin.credential_offer.created',
  'admin.credential_offer.deleted',
  'admin.delegation.approved',
  'admin.delegation.denied',
  'admin.delegation.requested',
  'admin.deployment.restored',
  'admin.api_resource.created',
  'admin.api_resource.deleted',
  'admin.api_resource.updated',
  'admin.application.created',
  'admin.application.deleted',
  'admin.application.registered',
  'admin.application.secret_rotated',
  'admin.application.updated',
  'admin.billing_plan.created',
  'admin.billing_plan.deleted',
  'admin.billing_plan.updated',
  'admin.organization.billing_changed',
  'admin.identity_assertion_policy.created',
  'admin.identity_assertion_policy.deleted',
  'admin.identity_assertion_policy.updated',
  'admin.mcp_server.created',
  'admin.mcp_server.deleted',
  'admin.mcp_server.updated',
  'admin.observed_client.deleted',
  'admin.organization.reactivated',
  'admin.organization.suspended',
  'admin.registration_token.created',
  'admin.scim_group.created',
  'admin.scim_group.deleted',
  'admin.scim_group.updated',
  'admin.scim_token.created',
  'admin.scim_token.deleted',
  'admin.signing_keys.rotated',
  'admin.tenant.reactivated',
  'admin.tenant.suspended',
  'admin.trusted_issuer.created',
  'admin.trusted_issuer.deleted',
  'admin.trusted_issuer.rule.created',
  'admin.trusted_issuer.rule.deleted',
  'admin.trusted_issuer.updated',
  'admin.user.password_rotated',
  'admin.user.reset_refused',
  'admin.user.session_revoked',
  'admin.user.updated',
  'admin.wallet.assigned',
  'admin.wallet.created',
  'admin.wallet.frozen',
  'admin.wallet.unfrozen',
  'admin.wallet.updated',
  'auth.assertion.refused',
  'auth.ciba.approved',
  'auth.ciba.denied',
  'auth.device.approved',
  'auth.device.denied',
  'auth.identity_assertion.accepted',
  'auth.identity_assertion.ended',
  'auth.identity_assertion.issued',
  'auth.policy.denied',
  'commerce.payment_link.changed',
  'commerce.payment_link.created',
  'commerce.price.changed',
  'commerce.price.created',
  'commerce.product.changed',
  'commerce.product.created',
  'commerce.subscription.canceled',
  'commerce.subscription.renewal_simulated',
  'commerce.x402_payment.resolved',
  'credential.issued',
  'credential.notification',
  'egress.calls.unknown',
  'org.domain.added',
  'org.domain.changed',
  'org.domain.removed',
  'org.domain.verified',
  'org.policy.changed',
  'org.tenant.created',
  'org.tenant.updated',
  'org.updated',
  'security_event.received',
  'signal_stream.created',
  'signal_stream.deleted',
  'signal_stream.undelivered',
  'signal_stream.updated',
  'tenant.activated',
  'tenant.asset.removed',
  'tenant.asset.uploaded',
  'tenant.settings.changed',
  'vault.certificate.revoked',
  'vault.credential.revoked',
  'vault.credential.rotated',
  'vault.credential.updated',
  'vault.grant.created',
  'vault.lease.created',
  'vault.lease.revoked',
  'webhook.subscription.changed',
  'webhook.subscription.created',
  'webhook.subscription.deleted',
  'webhook.subscription.secret_rotated',
] as const
export type AuditOnlyType = (typeof AUDIT_ONLY_TYPES)[number]

/** The caller of an action: the verified token and the client's address. */
export type Caller = {
  readonly principal: Principal
  /** Address of the client behind trusted proxies. */
  readonly address: string
}

/** The members of an audit event that identify the caller. */
export function doneBy({ principal, address }: Caller): {
  readonly subject: AuditParty
  readonly actors: readonly AuditParty[]
  readonly clientId: string
  readonly delegationId: string | null
  readonly delegation: DelegationIntent | undefined
  readonly ip: string
} {
  return {
    subject: { sub: principal.subject, subject_type: principal.subjectType },
    actors: principal.actors.map(({ sub, subjectType }) => ({ sub, subject_type: subjectType })),
    clientId: principal.clientId,
    delegationId: principal.delegationId,
    delegation: principal.delegation,
    ip: address,
  }
}

export type AuditedAction = {
  readonly id: string
  readonly tenantId: string
  readonly type: AuditOnlyType
  readonly occurredAt: Date
  readonly resource: AuditResource
  readonly requestId: string | undefined
  /** Default: `success`. */
  readonly outcome?: AuditOutcome
  readonly data?: Readonly<Record<string, unknown>>
}

/** The audit event of an action without a webhook event. */
export function audited(caller: Caller, action: AuditedAction) {
  const { requestId, outcome = 'success', data = {}, ...rest } = action
  return {
    ...doneBy(caller),
    ...rest,
    grantId: null,
    outcome,
    requestId: requestId ?? null,
    data,
  }
}

/** The audit event of an action without a caller, such as a command. */
export function withoutCaller(action: Omit<AuditedAction, 'requestId' | 'outcome'>) {
  return {
    subject: null,
    actors: [],
    clientId: null,
    delegationId: null,
    grantId: null,
    outcome: 'success' as const,
    requestId: null,
    ip: null,
    data: {},
    ...action,
  }
}

/** The `actor` of an event: the outermost actor of the token, otherwise its subject. */
export function actorOf({ principal }: Caller): { readonly type: string; readonly id: string } {
  const acting = principal.actors[0]
  return acting === undefined
    ? { type: principal.subjectType, id: principal.subject }
    : { type: acting.subjectType, id: acting.sub }
}

/** The members of an audit event for a user in a browser. */
export function byPerson<Address extends string | null>(
  { sub }: { readonly sub: string },
  address: Address,
) {
  return {
    subject: { sub, subject_type: 'human' },
    actors: [],
    clientId: null,
    grantId: null,
    ip: address,
  }
}
