/** The signed directory of the keys with which agents sign requests (Web Bot Auth). */
import type { Handlers } from '../../../../runtime/kernel/actor.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import {
  type AgentSignatureKeyRow,
  listAgentSignatureKeys,
} from '../../../../storage/agents/agent-signature-keys.js'
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'
import type { Database } from '../../../../storage/platform/sql.js'
import {
  openedKey,
  sealedSignatureKey,
  signatureJwk,
} from '../../../platform/agent-signature-keys.js'
import { ttlCache } from '../../../platform/batching/ttl-cache.js'
import { type Component, contentDigest, httpSignature } from '../../../platform/http-signatures.js'
import type { AgentDocumentsProtocol, SignatureDirectory } from './protocol.js'

/** The signatures of more keys would not fit into the header of an answer. */
const KEYS_MAX = 20
/** How long a removed key still verifies. */
const DIRECTORY_SECS = 300
/** Requests of strangers cost no private key within this time. */
const SIGNED_MS_MAX = 60_000
const TAG = 'http-message-signatures-directory'

type Needs = { readonly database: Database; readonly sealer: Sealer; readonly clock: Clock }

export function directoryOf(
  needs: Needs,
  authority: string,
): Handlers<AgentDocumentsProtocol>['signatureDirectory'] {
  /** By the keys that they list. */
  const answers = ttlCache<SignatureDirectory>(needs.clock, SIGNED_MS_MAX)
  return async function signatureDirectory({ agentId }) {
    const keys =
      agentId === null
        ? await needs.database.system((tx) => listAgentSignatureKeys(tx, KEYS_MAX))
        : [await sealedSignatureKey(needs, agentId)].flatMap((key) => key ?? [])
    if (agentId !== null && keys.length === 0) return { tag: 'unknown_agent' }
    const listed = keys.map(({ kid }) => kid).join(' ')
    return answers.get(listed, [], () => signed(needs, authority, keys))
  }
}

async function signed(
  { sealer, clock }: Needs,
  authority: string,
  keys: readonly AgentSignatureKeyRow[],
): Promise<SignatureDirectory> {
  const body = Buffer.from(JSON.stringify({ keys: keys.map(signatureJwk) }))
  const digest = contentDigest(body)
  const components: readonly Component[] = [
    ['"@authority";req', authority],
    ['"content-digest"', digest],
  ]
  const created = clock.nowSecs()
  const opened = await Promise.all(keys.map((key) => openedKey({ sealer }, key)))
  const signatures = opened.map(({ privateKey, kid }) =>
    httpSignature(privateKey, components, {
      created,
      expires: created + SIGNED_MS_MAX / 1000 + DIRECTORY_SECS,
      keyid: kid,
      alg: 'ed25519',
      tag: TAG,
    }),
  )
  const labelled = (member: 'input' | 'signature') =>
    signatures.map((each, index) => `sig${index + 1}=${each[member]}`).join(', ')
  return {
    tag: 'directory',
    body,
    headers: {
      'content-digest': digest,
      ...(keys.length === 0
        ? {}
        : { 'signature-input': labelled('input'), signature: labelled('signature') }),
    },
  }
}
