/** Maps rows to the records of the API. */
import type { AgentKeyRow, AgentWithKeys } from '../../../storage/agents/agents.js'
import { agentScopes } from '../../domain/scopes.js'
import type { AgentRecord, KeyRecord } from './protocol.js'

/** The record of an agent; its scopes are those in its home tenant. */
export function agentRecord(row: AgentWithKeys): AgentRecord {
  const { controlPlane, role, keys, anchors, scopes: granted, ...agent } = row
  const dids = anchors.filter(({ type }) => type !== 'erc8004')
  const anchor = dids.find(({ status }) => status === 'active') ?? dids[0]
  if (anchor === undefined) throw new Error(`agent ${agent.id} has no anchor`)
  return {
    ...agent,
    did: anchor.value,
    anchors,
    keys: keys.map(keyRecord),
    scopes: agentScopes({ controlPlane, role, granted }),
  }
}

export function keyRecord(row: AgentKeyRow): KeyRecord {
  return {
    id: row.fingerprint,
    algorithm: row.algorithm,
    publicKey: Buffer.from(row.publicKey).toString('base64url'),
    status: row.status,
    createdAt: row.createdAt,
    revokedAt: row.revokedAt,
  }
}
