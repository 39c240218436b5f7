/**
 * The keys of an agent: active -> deprecated -> revoked, or active -> revoked. `revoked` is final. A
 * lock on the agent's row serialises changes of its keys across all processes.
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import {
  deprecateKey,
  findVisibleAgent,
  findKeyStatuses,
  holdAgent,
  insertAgentKey,
  revokeKey,
} from '../../../../storage/agents/agent-management.js'
import { endAgentSessions } from '../../../../storage/agents/agent-status.js'
import { findAgent } from '../../../../storage/agents/agents.js'
import { endDelegations } from '../../../../storage/agents/delegations.js'
import { idempotently } from '../../../../storage/platform/idempotency.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import type { KeyRecord } from '../protocol.js'
import { keyRecord } from '../records.js'
import { ownershipRefusal } from '../rules.js'
import type { Caller } from '../../../domain/audit.js'
import { byCaller, delegationsRevoked } from '../../../domain/revocation.js'
import { isUuid } from '../../../domain/ids.js'
import { auditAgent } from './audit.js'
import { mayBeLocked } from './last-owner.js'
import type { AgentManagementNeeds, ManagementHandler } from './needs.js'
import type { KeyChanged, KeyUnchanged, OneKey } from './protocol.js'
import { isItself, judgeKeyChange, keyAuthority, scopesBeyond } from './rules.js'

/** Limit of keys per agent, revoked ones excluded. */
const KEYS_MAX = 20
const UNKNOWN_AGENT = { tag: 'unknown_agent' } as const

/** Whether the caller may change the agent's keys and anchors. @returns the agent's home tenant. */
export async function authorized(tx: Transaction, caller: Caller, agentId: string) {
  const { principal } = caller
  // An agent changes its own keys with a token of any tenant that it works in.
  const agent = isUuid(agentId)
    ? await findVisibleAgent(tx, principal.tenantId, agentId)
    : undefined
  if (agent === undefined) return UNKNOWN_AGENT
  const authority = keyAuthority(principal, agent)
  return authority === 'granted'
    ? { tag: 'granted' as const, homeTenantId: agent.homeTenantId, agent }
    : { tag: authority }
}

export const addAgentKey: ManagementHandler<'addAgentKey'> = async (needs, message, context) => {
  const { database, clock, pow, issuer } = needs
  const { caller, agentId, publicKey, keyAlgorithm, keyOwnershipProof: proof } = message
  const granted = await database.system((tx) => authorized(tx, caller, agentId), context)
  if (granted.tag !== 'granted') return granted
  const beyond = scopesBeyond(caller.principal, granted.agent)
  if (beyond.length > 0) return { tag: 'beyond_caller', scopes: beyond }
  const { homeTenantId: tenantId } = granted
  const verdict = await pow.verifyOwnership(
    { publicKey, keyAlgorithm, anchorType: 'did_key', proof, issuer, tenantId },
    context,
  )
  if (verdict.tag === 'invalid') {
    const refused = ownershipRefusal(verdict.reason)
    if (refused.tag === 'invalid_registration') return refused
    if (refused.tag === 'invalid_ownership_proof') return refused
    throw new Error(`an ownership proof was refused as ${refused.tag}`)
  }
  const { fingerprint, did, rawKey } = verdict
  const insert = async (tx: Transaction) => {
    if (!(await holdAgent(tx, agentId))) return UNKNOWN_AGENT
    tx.forget([agentId])
    const keys = await findKeyStatuses(tx, agentId)
    if (keys.filter(({ status }) => status !== 'revoked').length >= KEYS_MAX) {
      return { tag: 'too_many_keys' as const, most: KEYS_MAX }
    }
    const inserted = await insertAgentKey(tx, {
      tenantId,
      agentId,
      fingerprint,
      algorithm: keyAlgorithm,
      publicKey: rawKey,
      did,
      createdAt: clock.now(),
    })
    if (!inserted) return { tag: 'fingerprint_known' as const }
    const data = { key_id: fingerprint, algorithm: keyAlgorithm, did }
    const type = 'admin.agent.key.added'
    auditAgent(tx, needs, message, context, { type, tenantId, data })
    const key = await readKey(tx, agentId, fingerprint)
    return { tag: 'added' as const, key, replayed: false }
  }
  return database.system(
    (tx) =>
      idempotently(
        tx,
        message.idempotency,
        () => insert(tx),
        (outcome) => (outcome.tag === 'added' ? outcome : undefined),
      ),
    context,
  )
}

export const deprecateAgentKey: ManagementHandler<'deprecateAgentKey'> = (
  needs,
  message,
  context,
) => change(needs, message, 'deprecated', context)

export const revokeAgentKey: ManagementHandler<'revokeAgentKey'> = (needs, message, context) =>
  change(needs, message, 'revoked', context)

async function change(
  needs: AgentManagementNeeds,
  message: OneKey,
  to: 'deprecated' | 'revoked',
  context: MessageContext,
): Promise<KeyChanged | KeyUnchanged> {
  const { database, clock, random } = needs
  const { caller, agentId, keyId } = message
  const now = clock.now()
  // Not cancelled when the client disconnects: a revocation must complete.
  return database.system(async (tx) => {
    const granted = await authorized(tx, caller, agentId)
    if (granted.tag !== 'granted') return granted
    if (!(await holdAgent(tx, agentId))) return UNKNOWN_AGENT
    const keys = await findKeyStatuses(tx, agentId)
    const status = keys.find(({ fingerprint }) => fingerprint === keyId)?.status
    if (status === undefined) return { tag: 'unknown_key' as const }
    const verdict = judgeKeyChange(keyId, to, keys)
    if (verdict === 'key_revoked') return { tag: verdict }
    if (verdict === 'ends_logins') {
      // An agent does not lock itself out. An administrator may, but not the last owner.
      if (isItself(caller.principal, agentId)) return { tag: 'last_active_key' as const }
      if (!(await mayBeLocked(tx, caller, agentId, null))) return { tag: 'last_owner' as const }
    }
    if (verdict !== 'unchanged') {
      if (to === 'deprecated') await deprecateKey(tx, agentId, keyId, now)
      else {
        await revokeKey(tx, agentId, keyId, now)
        const ended = { agentId, tenantId: null, fingerprint: keyId }
        await endAgentSessions(tx, ended, 'key_revoked', now)
        const delegations = await endDelegations(tx, ended, 'key_revoked', now)
        const by = byCaller(caller, context.requestId)
        appendEvents(tx, delegationsRevoked(random, delegations, by))
      }
      const type = `admin.agent.key.${to}` as const
      const tenantId = granted.homeTenantId
      auditAgent(tx, needs, message, context, { type, tenantId, data: { key_id: keyId } })
    }
    return { tag: 'changed' as const, key: await readKey(tx, agentId, keyId) }
  })
}

async function readKey(tx: Transaction, agentId: string, keyId: string): Promise<KeyRecord> {
  const agent = await findAgent(tx, agentId)
  const key = agent?.keys.find(({ fingerprint }) => fingerprint === keyId)
  if (key === undefined) throw new Error('a locked key exists')
  return keyRecord(key)
}
