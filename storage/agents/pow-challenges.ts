/**
 * Proof-of-work challenges: issued -> consumed, or issued -> expired (by time or after too many invalid
 * proofs). Age and expiry use the clock of the database, which all processes share.
 *
 * A challenge is found by its id before its tenant is known, so these statements cross tenants.
 */
import { invariant } from '../../runtime/kernel/assert.js'
import type { KeyAlgorithm } from '../../actors/domain/signed-strings.js'
import { type AnchorType, type NewAgent, type Registered, registerAgentRow } from './agents.js'
import { onChainAgent, type OnChainAgent, onChainName } from './chain-anchors.js'
import { UNHURRIED } from '../platform/durability.js'
import { changedRows, execute, isChanged, LOOKED_UP, type Transaction } from '../platform/sql.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'

export type PowChallengeRow = {
  id: string
  tenantId: string
  kind: 'agent' | 'workspace'
  status: 'issued' | 'consumed' | 'expired'
  challengeToken: string
  difficultyBits: number
  minDurationSecs: number
  name: string
  anchorType: AnchorType
  /** Its method follows from the anchor type. An agent on a chain has a did:key. */
  did: string
  onChain?: OnChainAgent | undefined
  keyAlgorithm: KeyAlgorithm
  publicKey: Uint8Array
  fingerprint: string
  /** Milliseconds since it was issued. */
  ageMs: number
  /** Expired by time, regardless of `status`. */
  outlived: boolean
}

export type NewPowChallenge = Omit<PowChallengeRow, 'status' | 'ageMs' | 'outlived'> & {
  ttlSecs: number
}

/**
 * Issues challenges of any tenants in one statement. A challenge whose key or other anchor is registered in
 * its tenant already is not issued. (A did:key is covered by its key.)
 * @returns the expiry of each issued challenge, by id.
 */
export async function insertPowChallenges(
  tx: Transaction,
  challenges: readonly NewPowChallenge[],
): Promise<ReadonlyMap<string, Date>> {
  const column = <Value>(value: (challenge: NewPowChallenge) => Value) => challenges.map(value)
  const { rows } = await tx.query<{ id: string; expiresAt: Date }>({
    name: 'pow_challenge.insert',
    text: `insert into pow_challenges (tenant_id, id, kind, challenge_token, difficulty_bits,
             min_duration_secs, name, did, key_algorithm, public_key, fingerprint, created_at,
             expires_at, anchor_type, chain_anchor, chain_block)
           select c.tenant_id, c.id, c.kind, c.challenge_token, c.difficulty_bits,
             c.min_duration_secs, c.name, c.did, c.key_algorithm, c.public_key, c.fingerprint,
             clock.now, clock.now + make_interval(secs => c.ttl_secs), c.anchor_type,
             c.chain_anchor, c.chain_block
           from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::int[], $6::int[],
             $7::text[], $8::text[], $9::text[], $10::bytea[], $11::text[], $12::int[], $13::text[],
             $14::text[], $15::bigint[])
               with ordinality
               as c (tenant_id, id, kind, challenge_token, difficulty_bits, min_duration_secs, name,
                 did, key_algorithm, public_key, fingerprint, ttl_secs, anchor_type,
                 chain_anchor, chain_block, place),
             (select clock_timestamp() as now, ${UNHURRIED}) clock
           where ${LOOKED_UP}
             and not exists (select from agent_keys k
                 where k.tenant_id = c.tenant_id and k.fingerprint = c.fingerprint)
             and (c.anchor_type = 'did_key' or not exists (select from agent_anchors a
                 where a.tenant_id = c.tenant_id and a.type = c.anchor_type
                   and a.value = coalesce(c.chain_anchor, c.did)))
           returning id, expires_at as "expiresAt"`,
    values: [
      column((c) => c.tenantId),
      column((c) => c.id),
      column((c) => c.kind),
      column((c) => c.challengeToken),
      column((c) => c.difficultyBits),
      column((c) => c.minDurationSecs),
      column((c) => c.name),
      column((c) => c.did),
      column((c) => c.keyAlgorithm),
      column((c) => Buffer.from(c.publicKey)),
      column((c) => c.fingerprint),
      column((c) => c.ttlSecs),
      column((c) => c.anchorType),
      column(({ onChain }) => (onChain === undefined ? null : onChainName(onChain))),
      column((c) => c.onChain?.block ?? null),
    ],
  })
  return new Map(rows.map(({ id, expiresAt }) => [id, expiresAt]))
}

export async function findPowChallenge(
  tx: Transaction,
  id: string,
): Promise<PowChallengeRow | undefined> {
  type Stored = Omit<PowChallengeRow, 'onChain'> & {
    chainAnchor: string | null
    chainBlock: number
  }
  const { rows } = await tx.query<Stored>({
    name: 'pow_challenge.find',
    text: `select ${columnsOf(`id tenant_id kind status challenge_token difficulty_bits min_duration_secs name did
             anchor_type chain_anchor chain_block key_algorithm public_key fingerprint`)},
             floor(extract(epoch from clock.now - created_at) * 1000)::float8 as "ageMs",
             expires_at <= clock.now as outlived
           from pow_challenges, (select clock_timestamp() as now) clock
           where id = $1`,
    values: [id],
  })
  if (rows[0] === undefined) return undefined
  const { chainAnchor, chainBlock, ...row } = rows[0]
  return {
    ...row,
    onChain: chainAnchor === null ? undefined : onChainAgent(chainAnchor, chainBlock),
  }
}

/** Counts an invalid proof; the challenge expires at the limit. */
export const countInvalidProof = (tx: Transaction, id: string, max: number) =>
  execute(tx, {
    name: 'pow_challenge.count_invalid',
    text: `update pow_challenges set invalid_proofs = invalid_proofs + 1,
             status = case when invalid_proofs + 1 >= $2 then 'expired' else status end
           where id = $1 and status = 'issued'`,
    values: [id, max],
  })

/** `closed`: consumed already or expired. Only `registered` changes anything. */
export type Redemption = Registered | 'closed'

/**
 * Consumes a challenge and registers its agent. The row lock makes this atomic: of concurrent calls one
 * registers, the others find the challenge closed.
 */
export async function redeemPowChallenge(
  tx: Transaction,
  id: string,
  agent: NewAgent,
): Promise<Redemption> {
  if (!(await holdPowChallenge(tx, id))) return 'closed'
  const registered = await registerAgentRow(tx, agent)
  if (registered !== 'registered') return registered
  const consumed = await consumePowChallenge(tx, id)
  invariant(consumed, 'a locked open challenge is consumed')
  return 'registered'
}

/** Locks an open challenge until the transaction ends; false when it is closed. */
const holdPowChallenge = (tx: Transaction, id: string) =>
  isChanged(tx, {
    name: 'pow_challenge.hold',
    text: `select from pow_challenges
           where id = $1 and status = 'issued' and expires_at > clock_timestamp() for update`,
    values: [id],
  })

/** issued -> consumed, once across all processes; true for the call that wins. */
const consumePowChallenge = (tx: Transaction, id: string) =>
  isChanged(tx, {
    name: 'pow_challenge.consume',
    text: `update pow_challenges set status = 'consumed', consumed_at = clock_timestamp()
           where id = $1 and status = 'issued'`,
    values: [id],
  })

/** Deletes up to `limit` challenges that expired more than `retentionSecs` ago. @returns the number. */
export const deleteEndedPowChallenges = (tx: Transaction, retentionSecs: number, limit: number) =>
  changedRows(tx, {
    name: 'pow_challenge.delete_ended',
    text: `delete from pow_challenges where id in (
             select id from pow_challenges
             where expires_at < statement_timestamp() - make_interval(secs => $1)
             limit $2 for update skip locked)`,
    values: [retentionSecs, limit],
  })
