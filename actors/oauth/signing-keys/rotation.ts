/** Executes a rotation plan. A lock serialises processes, and each step is conditional. */
import { createPublicKey } from 'node:crypto'
import { calculateJwkThumbprint } from 'jose'
import { freshPrivateKey, freshRsaKey } from '../../../runtime/kernel/key-pair.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import { SYSTEM_TENANT_ID } from '../../../storage/platform/sealing/seal.js'
import {
  deleteSigningKey,
  insertSigningKey,
  listSigningKeys,
  lockSigningKeys,
  promoteSigningKey,
  retireSigningKey,
  type SigningKeyRow,
  privateKeyContext,
} from '../../../storage/oauth/signing-keys.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { publicJwkOf } from '../../platform/jose/own-jwt.js'
import { SIGNING_ALGORITHMS, type SigningAlgorithm } from './protocol.js'
import type { KeyRow, Plan, Step, TooEarly } from './rules.js'

/** Another process may change the keys before the lock is taken. Then the plan is made again. */
const ATTEMPTS_MAX = 5

type Needs = {
  readonly database: Database
  readonly sealer: Sealer
  /** The tenant that owns the keys. Default: the service. */
  readonly owner?: string | undefined
}
export type Done = {
  readonly tag: 'done'
  readonly created: number
  readonly promoted: number
  readonly removed: number
}

/** A key created and sealed before the lock is taken, because sealing calls the kms. */
type Candidate = Pick<SigningKeyRow, 'kid' | 'algorithm' | 'publicJwk' | 'privateSealed'>
type Planner = (rows: readonly KeyRow[]) => Plan | TooEarly

/** The keys that stopped and started to sign. */
export type Replaced = {
  readonly retired: readonly { readonly kid: string; readonly verifiableUntil: Date }[]
  readonly current: readonly string[]
}
/** Writes the audit entry of a rotation as the last step of its transaction. */
export type WriteAudit = (tx: Transaction, replaced: Replaced) => Promise<void>

export async function carryOut(
  { database, sealer, owner = SYSTEM_TENANT_ID }: Needs,
  now: Date,
  planner: Planner,
  writeAudit?: WriteAudit,
): Promise<Done | TooEarly> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const seen = await database.tenant(owner, (tx) => listSigningKeys(tx, owner))
    const outlook = planner(seen)
    if (outlook.tag === 'too_early') return outlook
    if (outlook.steps.length === 0) return { tag: 'done', created: 0, promoted: 0, removed: 0 }
    const candidates = await makeCandidates(outlook.steps, sealer, owner)
    // The keys have another tenant, and the audit entry belongs to the control plane: it crosses tenants.
    const outcome = await database.system(async (tx) => {
      await lockSigningKeys(tx, owner)
      const rows = await listSigningKeys(tx, owner)
      const plan = sameKeys(rows, seen) ? outlook : planner(rows)
      if (plan.tag === 'too_early') return plan
      if (!suffices(candidates, plan.steps)) return undefined
      const done = await takeSteps(tx, owner, now, plan.steps, [...candidates])
      if (done.retired.length > 0) await writeAudit?.(tx, done)
      const { created, promoted, removed } = done
      return { tag: 'done' as const, created, promoted, removed }
    })
    if (outcome !== undefined) return outcome
  }
  throw new Error('the signing keys changed during each attempt of the rotation')
}

async function takeSteps(
  tx: Transaction,
  owner: string,
  now: Date,
  steps: readonly Step[],
  candidates: Candidate[],
): Promise<Replaced & Omit<Done, 'tag'>> {
  const done = { created: 0, promoted: 0, removed: 0 }
  const current: string[] = []
  for (const step of steps) {
    const kid = await takeStep(tx, owner, now, step, candidates)
    // The lock prevents concurrent changes, so a changed row is a defect.
    if (kid === undefined) throw new Error(`a signing key was not as planned: ${step.do}`)
    if (step.do === 'promote' || (step.do === 'create' && step.state === 'current')) {
      current.push(kid)
    }
    if (step.do === 'create') done.created += 1
    if (step.do === 'promote') done.promoted += 1
    if (step.do === 'remove') done.removed += 1
  }
  const retired = steps.filter((step) => step.do === 'retire')
  return { retired, current, ...done }
}

/** The kid of the changed key. Undefined if its row was not as planned. */
async function takeStep(
  tx: Transaction,
  owner: string,
  now: Date,
  step: Step,
  candidates: Candidate[],
): Promise<string | undefined> {
  switch (step.do) {
    case 'retire':
      return (await retireSigningKey(tx, owner, step.kid, step.verifiableUntil))
        ? step.kid
        : undefined
    case 'promote':
      return (await promoteSigningKey(tx, owner, step.kid, now)) ? step.kid : undefined
    case 'remove':
      return (await deleteSigningKey(tx, owner, step.kid, now)) ? step.kid : undefined
    case 'create': {
      const at = candidates.findIndex(({ algorithm }) => algorithm === step.algorithm)
      const [candidate] = candidates.splice(at, 1)
      if (candidate === undefined) return undefined
      const inserted = await insertSigningKey(tx, owner, {
        ...candidate,
        state: step.state,
        createdAt: now,
        currentSince: step.state === 'current' ? now : null,
        verifiableUntil: null,
      })
      return inserted ? candidate.kid : undefined
    }
  }
}

async function makeCandidates(
  steps: readonly Step[],
  sealer: Sealer,
  owner: string,
): Promise<Candidate[]> {
  const candidates: Candidate[] = []
  for (const step of steps) {
    if (step.do === 'create') candidates.push(await makeCandidate(step.algorithm, sealer, owner))
  }
  return candidates
}

async function makeCandidate(
  algorithm: SigningAlgorithm,
  sealer: Sealer,
  owner: string,
): Promise<Candidate> {
  const privateKey =
    algorithm === 'RS256'
      ? await freshRsaKey()
      : freshPrivateKey(algorithm === 'ES256' ? 'P-256' : 'ed25519')
  const publicJwk = publicJwkOf(createPublicKey(privateKey))
  const kid = await calculateJwkThumbprint(publicJwk)
  const der = privateKey.export({ format: 'der', type: 'pkcs8' })
  const privateSealed = await sealer.seal(owner, privateKeyContext(kid), der)
  der.fill(0)
  return { kid, algorithm, publicJwk, privateSealed }
}

function suffices(candidates: readonly Candidate[], steps: readonly Step[]): boolean {
  const count = (algorithm: SigningAlgorithm, list: readonly { algorithm?: string }[]) =>
    list.filter((each) => each.algorithm === algorithm).length
  const creates = steps.filter((step) => step.do === 'create')
  return SIGNING_ALGORITHMS.every(
    (algorithm) => count(algorithm, creates) <= count(algorithm, candidates),
  )
}

function sameKeys(a: readonly KeyRow[], b: readonly KeyRow[]): boolean {
  const words = (rows: readonly KeyRow[]) => rows.map(({ kid, state }) => `${kid} ${state}`).join()
  return words(a) === words(b)
}
