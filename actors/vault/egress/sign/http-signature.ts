/** `http_signature`: RFC 9421 signatures of agents, as Web Bot Auth has them, with a key that the service holds. */
import { denied } from '../../../domain/vault/denied.js'
import { agentDocumentUrl } from '../../../domain/agents/documents.js'
import type { AgentSignatureKey } from '../../../platform/agent-signature-keys.js'
import { type Component, contentDigest, httpSignature } from '../../../platform/http-signatures.js'
import type { HeaderPair } from '../protocol.js'
import { type Signer, withoutSignature } from './signer.js'

const LABEL = 'sig1'
const LIFETIME_SECS = 60
const TAG = 'web-bot-auth'
/** What a string of a structured field may have (RFC 9651 section 3.3.3), without quotes and backslashes. */
const NONCE = /;\s*nonce="([ !#-[\]-~]{1,512})"/
const OTHER_TAG = /;\s*tag="(?!web-bot-auth")/

export type HttpSigning = {
  readonly issuer: string
  /** Undefined for an agent that is not active. */
  readonly keyOf: (agentId: string) => Promise<AgentSignatureKey | undefined>
}

export const httpSignatureSigner = ({ issuer, keyOf }: HttpSigning): Signer<'http_signature'> => ({
  async sign(call) {
    const { agentId, body, method, host } = call
    if (agentId == null) return { tag: 'refused', outcome: NO_AGENT }
    const key = await keyOf(agentId)
    if (key === undefined) return { tag: 'refused', outcome: { tag: 'unknown_credential' } }
    const directory = `"${agentDocumentUrl(issuer, agentId, 'jwks')}"`
    const digest = body === null || body.byteLength === 0 ? null : contentDigest(body)
    const components: Component[] = [
      ['"@authority"', host.toLowerCase()],
      ['"@method"', method],
      ['"@path"', call.path.split('?', 1)[0] || '/'],
      [`"signature-agent";key="${LABEL}"`, directory],
      ...(digest === null ? [] : [['"content-digest"', digest] as const]),
    ]
    const created = Math.floor(call.now.getTime() / 1000)
    const { input, signature } = httpSignature(key.privateKey, components, {
      created,
      expires: created + LIFETIME_SECS,
      keyid: key.kid,
      alg: 'ed25519',
      ...(call.nonce === undefined ? {} : { nonce: call.nonce }),
      tag: TAG,
    })
    const added: HeaderPair[] = [
      ...(digest === null ? [] : [['content-digest', digest] as const]),
      ['signature-agent', `${LABEL}=${directory}`],
      ['signature-input', `${LABEL}=${input}`],
      ['signature', `${LABEL}=${signature}`],
    ]
    const headers = [...withoutSignature(call.headers), ...added]
    return { tag: 'signed', path: call.path, headers, secrets: [] }
  },
  /** `Accept-Signature` asks for another one (RFC 9421 section 5). */
  again({ status, headers }) {
    const asked = headers['accept-signature']
    const text = Array.isArray(asked) ? asked.join(', ') : asked
    if (status !== 403 || text === undefined || OTHER_TAG.test(text)) return null
    const nonce = NONCE.exec(text)?.[1]
    return nonce === undefined ? {} : { nonce }
  },
})

const NO_AGENT = denied('call_not_covered', 'Only agents sign with this credential.')
