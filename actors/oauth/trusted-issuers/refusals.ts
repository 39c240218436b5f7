/** The audit events of refused tokens. */
import { appendAudit } from '../../../storage/operations/audit.js'
import { withoutCaller } from '../../domain/audit.js'
import type { Refused } from './admission.js'
import type { TrustedIssuerTools } from './needs.js'

/** Tells the tenant of tokens that its issuers made. Other tokens anyone can make, so they are only logged. */
export async function recordRefusal(
  { database, clock, random, mayRecord }: TrustedIssuerTools,
  { issuer, rule, failed: [first] }: Refused,
  requestId: string | undefined,
): Promise<void> {
  if (issuer === undefined || !mayRecord(`${issuer.id} ${first!.step}`)) return
  const { tenantId, id } = issuer
  const event = withoutCaller({
    id: random.uuid(),
    tenantId,
    type: 'auth.assertion.refused',
    occurredAt: clock.now(),
    resource: { type: 'trusted_issuer', id },
    data: { ...first, issuer: issuer.issuer, ...(rule && { rule_id: rule.id }) },
  })
  const refused = { ...event, outcome: 'denied' as const, requestId: requestId ?? null }
  await database.tenant(tenantId, async (tx) => appendAudit(tx, [refused]))
}
