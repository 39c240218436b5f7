/** The keys with which agents sign requests to other services. Made with the first signature, and sealed like other keys. */
import { createHash, createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import {
  type AgentSignatureKeyRow,
  findAgentSignatureKey,
  insertAgentSignatureKey,
  listAgentSignatureKeys,
  signatureKeyContext,
} from '../../storage/agents/agent-signature-keys.js'
import type { Sealer } from '../../storage/platform/sealing/sealer.js'
import type { Clock } from '../../runtime/kernel/clock.js'
import type { Database } from '../../storage/platform/sql.js'
import { isUuid } from '../domain/ids.js'

export type AgentSignatureKey = Pick<AgentSignatureKeyRow, 'agentId' | 'point' | 'kid'> & {
  readonly privateKey: KeyObject
}

type Needs = { readonly database: Database; readonly sealer: Sealer; readonly clock: Clock }

/** The key of an active agent, or undefined: it is suspended, unknown, or has none and `makes` is false. */
export async function agentSignatureKey(
  needs: Needs,
  agentId: string,
  { makes }: { readonly makes: boolean },
): Promise<AgentSignatureKey | undefined> {
  if (!isUuid(agentId)) return undefined
  const find = () => needs.database.system((tx) => findAgentSignatureKey(tx, agentId))
  let found = await find()
  if (found !== undefined && found.privateSealed == null && makes) {
    await make(needs, agentId, found.homeTenantId)
    found = await find()
  }
  return found?.privateSealed == null ? undefined : opened(needs, found as AgentSignatureKeyRow)
}

/** Keys of active agents, newest first. */
export async function agentSignatureKeys(
  needs: Needs,
  limit: number,
): Promise<AgentSignatureKey[]> {
  const rows = await needs.database.system((tx) => listAgentSignatureKeys(tx, limit))
  return Promise.all(rows.map((row) => opened(needs, row)))
}

/** As a JSON Web Key of a directory. */
export const signatureJwk = ({ point, kid }: Pick<AgentSignatureKey, 'point' | 'kid'>) => ({
  kty: 'OKP',
  crv: 'Ed25519',
  kid,
  x: point,
  use: 'sig',
})

async function make({ database, sealer, clock }: Needs, agentId: string, tenantId: string) {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const { x: point = '' } = publicKey.export({ format: 'jwk' })
  const der = privateKey.export({ format: 'der', type: 'pkcs8' })
  const privateSealed = await sealer
    .seal(tenantId, signatureKeyContext(agentId), der)
    .finally(() => der.fill(0))
  const kid = thumbprint(point)
  const createdAt = clock.now()
  await database.system((tx) =>
    insertAgentSignatureKey(tx, { tenantId, agentId, point, kid, privateSealed, createdAt }),
  )
}

async function opened({ sealer }: Needs, row: AgentSignatureKeyRow): Promise<AgentSignatureKey> {
  const { tenantId, agentId, point, kid, privateSealed } = row
  const der = Buffer.from(await sealer.open(tenantId, signatureKeyContext(agentId), privateSealed))
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  der.fill(0)
  return { agentId, point, kid, privateKey }
}

/** RFC 7638 section 3, RFC 8037 section 2. */
const thumbprint = (x: string) =>
  createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).digest('base64url')
