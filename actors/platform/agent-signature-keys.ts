/** The keys with which agents sign requests to other services. Made with the first signature, and sealed like other keys. */
import { createHash, createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import {
  type AgentSignatureKeyRow,
  findAgentSignatureKey,
  insertAgentSignatureKey,
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

/** The key of an active agent, made if it has none. Undefined: the agent is suspended or unknown. */
export async function agentSignatureKey(
  needs: Needs,
  agentId: string,
): Promise<AgentSignatureKey | undefined> {
  if (!isUuid(agentId)) return undefined
  const find = () => needs.database.system((tx) => findAgentSignatureKey(tx, agentId))
  let found = await find()
  if (found !== undefined && found.privateSealed == null) {
    await make(needs, agentId, found.homeTenantId)
    found = await find()
  }
  return isKey(found) ? openedKey(needs, found) : undefined
}

/** The sealed key of an active agent. A reader of its public half opens nothing. */
export async function sealedSignatureKey(
  { database }: Pick<Needs, 'database'>,
  agentId: string,
): Promise<AgentSignatureKeyRow | undefined> {
  if (!isUuid(agentId)) return undefined
  const found = await database.system((tx) => findAgentSignatureKey(tx, agentId))
  return isKey(found) ? found : undefined
}

const isKey = <Found extends Partial<AgentSignatureKeyRow>>(
  found: Found | undefined,
): found is Found & AgentSignatureKeyRow => found?.privateSealed != null

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

export async function openedKey(
  { sealer }: Pick<Needs, 'sealer'>,
  row: AgentSignatureKeyRow,
): Promise<AgentSignatureKey> {
  const { tenantId, agentId, point, kid, privateSealed } = row
  const der = Buffer.from(await sealer.open(tenantId, signatureKeyContext(agentId), privateSealed))
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  der.fill(0)
  return { agentId, point, kid, privateKey }
}

/** RFC 7638 section 3, RFC 8037 section 2. */
const thumbprint = (x: string) =>
  createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).digest('base64url')
