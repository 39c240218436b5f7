/** The rules of a trusted issuer: which of its tokens stand for which application. */
import {
  deleteRule,
  insertRule,
  rulesOfIssuer,
  findRuleTarget,
  trustedIssuerTable,
} from '../../../storage/oauth/trusted-issuers.js'
import { isUuid } from '../../domain/ids.js'
import { powersBeyond } from '../../domain/scopes.js'
import { createOnce } from '../../platform/creation.js'
import { recordAudit } from '../../platform/record-audit.js'
import { conditionFault, isPinned, PINNED } from './conditions.js'
import type { TrustedIssuerHandler } from './needs.js'
import type { RuleCreated, RuleRefused } from './protocol.js'
import { inTenant } from '../../platform/in-tenant.js'

const RULES_MAX = 100
/** Each token of the issuer reads all of its rules. */
const RULE_CHARACTERS_MAX = 8_192
const UNKNOWN = { tag: 'unknown' } as const

export const listTrustedIssuerRules: TrustedIssuerHandler<'listTrustedIssuerRules'> = async (
  { database },
  { caller, id },
  context,
) => {
  const { tenantId } = caller.principal
  if (!isUuid(id)) return UNKNOWN
  return inTenant(database, tenantId, context, async (tx) => {
    if ((await trustedIssuerTable.find(tx, tenantId, id)) === undefined) return UNKNOWN
    return { tag: 'listed', rules: await rulesOfIssuer(tx, tenantId, id) } as const
  })
}

export const createTrustedIssuerRule: TrustedIssuerHandler<'createTrustedIssuerRule'> = (
  needs,
  message,
  context,
) => {
  const { caller, issuerId, draft } = message
  type Outcome = RuleCreated | RuleRefused | typeof UNKNOWN
  return createOnce<Outcome>(needs, message, context, async (tx, tenantId) => {
    const issuer = isUuid(issuerId)
      ? await trustedIssuerTable.lock(tx, tenantId, issuerId)
      : undefined
    if (issuer === undefined) return UNKNOWN
    if (issuer.purposes[0] !== 'workload')
      return { tag: 'invalid', pointer: '', detail: 'An issuer for people has no rules.' }
    if (JSON.stringify(draft).length > RULE_CHARACTERS_MAX)
      return {
        tag: 'invalid',
        pointer: '',
        detail: `A rule has at most ${RULE_CHARACTERS_MAX} characters.`,
      }
    const fault = conditionFault(draft.conditions)
    if (fault !== undefined)
      return { tag: 'invalid', pointer: `/conditions/${fault.index}`, detail: `${fault.detail}.` }
    if (!isPinned(issuer, draft.conditions))
      return { tag: 'not_pinned', claim: PINNED[issuer.kind] }
    const target = await findRuleTarget(tx, tenantId, draft.clientId)
    if (target === undefined) return { tag: 'target_unknown' }
    const scope = draft.scopes.find((one) => !target.scopes.includes(one))
    if (scope !== undefined) return { tag: 'scope_unknown', scope }
    // The caller chooses the issuer, and so can act as the application.
    const beyond = powersBeyond(target.scopes, caller.principal.scopes)
    if (beyond.length > 0) return { tag: 'forbidden', scopes: beyond }
    const rules = await rulesOfIssuer(tx, tenantId, issuerId)
    if (rules.length >= RULES_MAX) return { tag: 'full', most: RULES_MAX }
    const last = rules.at(-1)?.position ?? -1
    const rule = {
      ...draft,
      id: needs.random.uuid(),
      tenantId,
      trustedIssuerId: issuerId,
      position: draft.position ?? last + 1,
      createdAt: needs.clock.now(),
    }
    await insertRule(tx, rule)
    const { name, clientId, scopes, resources, conditions } = rule
    recordAudit(tx, needs, caller, context, {
      type: 'admin.trusted_issuer.rule.created',
      resource: { type: 'trusted_issuer_rule', id: rule.id },
      data: {
        trusted_issuer_id: issuerId,
        name,
        client_id: clientId,
        scopes,
        resources,
        conditions,
      },
    })
    return { tag: 'created', rule, replayed: false }
  })
}

export const deleteTrustedIssuerRule: TrustedIssuerHandler<'deleteTrustedIssuerRule'> = async (
  needs,
  { caller, id, ruleId },
  context,
) => {
  const { tenantId } = caller.principal
  if (!isUuid(id) || !isUuid(ruleId)) return UNKNOWN
  return inTenant(needs.database, tenantId, context, async (tx) => {
    const deleted = await deleteRule(tx, tenantId, id, ruleId)
    if (deleted === undefined) return UNKNOWN
    recordAudit(tx, needs, caller, context, {
      type: 'admin.trusted_issuer.rule.deleted',
      resource: { type: 'trusted_issuer_rule', id: ruleId },
      data: { trusted_issuer_id: id, name: deleted.name },
    })
    return { tag: 'removed' } as const
  })
}
