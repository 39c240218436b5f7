/** Admits a token of a trusted issuer, or says what would happen to it. */
import { appendAudit } from '../../../storage/operations/audit.js'
import { withoutCaller } from '../../domain/audit.js'
import { isUuid } from '../../domain/ids.js'
import { trustedIssuerTable } from '../../../storage/oauth/trusted-issuers.js'
import { judge, type Refused, useOnce } from './admission.js'
import type { TrustedIssuerHandler, TrustedIssuerTools } from './needs.js'
import { failed } from './validation.js'

export const admitAssertion: TrustedIssuerHandler<'admitAssertion'> = async (
  tools,
  { tenantId, assertion, presentedAs },
  { requestId },
) => {
  const judged = await judge(tools, tenantId, assertion)
  if ('failed' in judged) {
    await recordRefusal(tools, judged, requestId)
    return { tag: 'not_admitted', step: judged.failed[0]!.step }
  }
  const { issuer, rule, jws, scopes } = judged
  if (presentedAs === 'spiffe' && issuer.kind !== 'spiffe')
    return { tag: 'not_admitted', step: 'issuer' }
  if (!(await useOnce(tools, judged))) return { tag: 'not_admitted', step: 'jti' }
  return {
    tag: 'admitted',
    issuerId: issuer.id,
    ruleId: rule.id,
    clientId: rule.clientId,
    scopes,
    resources: rule.resources,
    maxLifetimeSecs: rule.maxLifetimeSecs,
    expiresAtSecs: Number(jws.claims['exp']),
  }
}

/** Tells the tenant of tokens that its issuers made. Other tokens anyone can make, so they are only logged. */
async function recordRefusal(
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

export const evaluateTrustedIssuerToken: TrustedIssuerHandler<
  'evaluateTrustedIssuerToken'
> = async (tools, { caller, id, token }, { signal }) => {
  const { tenantId } = caller.principal
  const named = isUuid(id)
    ? await tools.database.tenant(tenantId, (tx) => trustedIssuerTable.find(tx, tenantId, id), {
        signal,
      })
    : undefined
  if (named === undefined) return { tag: 'unknown' }
  const judged = await judge(tools, tenantId, token)
  if ('failed' in judged)
    return { tag: 'evaluated', ruleId: judged.rule?.id ?? null, failed: judged.failed }
  const isOther = judged.issuer.id !== id
  return {
    tag: 'evaluated',
    ruleId: isOther ? null : judged.rule.id,
    failed: isOther ? [failed('issuer', `the token is of ${judged.issuer.issuer}`)] : [],
  }
}
