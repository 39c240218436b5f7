/**
 * Enforces access policies where tokens are signed: every access token of a request passes the guarded signer. The
 * authorization endpoint evaluates the same policies before the sign-in (authorization/access.ts).
 */
import { accessPoliciesInForce } from '../../../../storage/oauth/access-policies.js'
import { appendAudit } from '../../../../storage/operations/audit.js'
import type { AccessPolicy } from '../../../domain/entities/access-policy.js'
import { ttlCache } from '../../../platform/batching/ttl-cache.js'
import type { AccessGrant } from './access-token.js'
import type { TokenSigner } from './token-signer.js'
import {
  type AccessQuestion,
  denials,
  type PolicyVerdict,
} from '../../../domain/oauth/access-policies.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

/** Thrown by a guarded signer. The grant of the request has had no effect yet. */
export class PolicyDenied extends Error {
  override readonly name = 'PolicyDenied'
  readonly verdict: PolicyVerdict

  constructor(verdict: PolicyVerdict) {
    super(DENIED)
    this.verdict = verdict
  }
}

/** Tells the caller nothing about the conditions. The audit log names the policy. */
export const DENIED = 'an access policy of the tenant refuses this request'

export interface AccessPolicies {
  /** The policies of a tenant, remembered for less than a second. */
  inForce(tenantId: string): Promise<readonly AccessPolicy[]>
  /** A signer that refuses what the policies refuse. `address` is the client's address. */
  guard(signer: TokenSigner, address: string | null, requestId: string | undefined): TokenSigner
  /** Writes the audit event of a refusal. */
  record(denial: RecordedDenial): Promise<void>
  invalidate(ids: readonly string[] | 'all'): void
}

type RecordedDenial = {
  readonly tenantId: string
  readonly question: AccessQuestion
  readonly verdict: PolicyVerdict
  /** Null before the sign-in. */
  readonly subject: { readonly sub: string; readonly subject_type: string } | null
  readonly requestId: string | undefined
}

type AccessPoliciesNeeds = WriteNeeds

export function createAccessPolicies({
  database,
  clock,
  random,
}: AccessPoliciesNeeds): AccessPolicies {
  const known = ttlCache<readonly AccessPolicy[]>(clock)

  const inForce = (tenantId: string) =>
    known.get(tenantId, [tenantId], () =>
      database.tenant(tenantId, (tx) => accessPoliciesInForce(tx, tenantId)),
    )

  async function record(denial: RecordedDenial): Promise<void> {
    const { tenantId, question, verdict, subject, requestId } = denial
    const { action, clientId, scopes, address, level } = question
    await database.tenant(tenantId, async (tx) =>
      appendAudit(tx, [
        {
          id: random.uuid(),
          tenantId,
          type: 'auth.policy.denied',
          occurredAt: clock.now(),
          subject,
          actors: [],
          clientId,
          grantId: null,
          delegationId: null,
          resource: { type: 'access_policy', id: verdict.policy.id },
          outcome: 'denied',
          requestId: requestId ?? null,
          ip: address,
          data: {
            action,
            reason: verdict.reason,
            policy: verdict.policy.name,
            scopes,
            ...(level === null ? {} : { acr: `aal${level}` }),
          },
        },
      ]),
    )
  }

  return {
    inForce,
    record,
    guard: (signer, address, requestId) => ({
      ...signer,
      async sign(grant, ...rest) {
        const policies = await inForce(grant.tenantId)
        if (policies.length > 0) {
          const question = questionOf(grant, address)
          const [verdict] = denials(policies, question)
          if (verdict !== undefined) {
            const { tenantId, subject: sub, subjectType } = grant
            const subject = { sub, subject_type: subjectType }
            await record({ tenantId, question, verdict, subject, requestId })
            throw new PolicyDenied(verdict)
          }
        }
        return signer.sign(grant, ...rest)
      },
    }),
    invalidate: (ids) => known.invalidate(ids),
  }
}

function questionOf(grant: AccessGrant, address: string | null): AccessQuestion {
  const { clientId, scopes, subjectType } = grant
  const level = subjectType === 'human' ? (grant.level ?? 1) : null
  return { action: 'token', clientId, scopes, address, level }
}
