/** Admits a token of a trusted issuer, or says what would happen to it. */
import { isUuid } from '../../domain/ids.js'
import { trustedIssuerTable } from '../../../storage/oauth/trusted-issuers.js'
import { judge, useOnce } from './admission.js'
import { evaluateAssertion } from './admit-person.js'
import type { TrustedIssuerHandler } from './needs.js'
import { recordRefusal } from './refusals.js'
import { failed } from './validation.js'
import { inTenant } from '../../platform/in-tenant.js'

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

export const evaluateTrustedIssuerToken: TrustedIssuerHandler<
  'evaluateTrustedIssuerToken'
> = async (tools, { caller, id, token }, context) => {
  const { tenantId } = caller.principal
  const named = isUuid(id)
    ? await inTenant(tools.database, tenantId, context, (tx) =>
        trustedIssuerTable.find(tx, tenantId, id),
      )
    : undefined
  if (named === undefined) return { tag: 'unknown' }
  const judged =
    named.purposes[0] === 'workload'
      ? await judge(tools, tenantId, token)
      : await evaluateAssertion(tools, tenantId, token, context)
  if ('failed' in judged)
    return { tag: 'evaluated', ruleId: judged.rule?.id ?? null, failed: judged.failed }
  const isOther = judged.issuer.id !== id
  return {
    tag: 'evaluated',
    ruleId: isOther || !('rule' in judged) ? null : judged.rule.id,
    failed: isOther ? [failed('issuer', `the token is of ${judged.issuer.issuer}`)] : [],
  }
}
