/** The signed directory of the keys with which agents sign requests (Web Bot Auth). */
import type { Handlers } from '../../../../runtime/kernel/actor.js'
import {
  agentSignatureKey,
  agentSignatureKeys,
  signatureJwk,
} from '../../../platform/agent-signature-keys.js'
import { type Component, contentDigest, httpSignature } from '../../../platform/http-signatures.js'
import type { AgentDocumentsProtocol } from './protocol.js'

/** The signatures of more keys would not fit into the header of an answer. */
const KEYS_MAX = 20
/** How long a removed key still verifies. */
const DIRECTORY_SECS = 300
const TAG = 'http-message-signatures-directory'

type Needs = Parameters<typeof agentSignatureKeys>[0]

export const directoryOf = (
  needs: Needs,
  authority: string,
): Handlers<AgentDocumentsProtocol>['signatureDirectory'] =>
  async function signatureDirectory({ agentId }) {
    const keys =
      agentId === null
        ? await agentSignatureKeys(needs, KEYS_MAX)
        : [await agentSignatureKey(needs, agentId, { makes: false })].flatMap((key) => key ?? [])
    if (agentId !== null && keys.length === 0) return { tag: 'unknown_agent' }
    const body = Buffer.from(JSON.stringify({ keys: keys.map(signatureJwk) }))
    const digest = contentDigest(body)
    const components: readonly Component[] = [
      ['"@authority";req', authority],
      ['"content-digest"', digest],
    ]
    const created = needs.clock.nowSecs()
    const signatures = keys.map(({ privateKey, kid }) =>
      httpSignature(privateKey, components, {
        created,
        expires: created + DIRECTORY_SECS,
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
