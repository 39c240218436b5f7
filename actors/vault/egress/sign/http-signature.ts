/** `http_signature`: RFC 9421 signatures of agents, as Web Bot Auth has them, with a key that the service holds. */
import type { Random } from '../../../../runtime/kernel/random.js'
import { denied } from '../../../domain/vault/denied.js'
import { agentDocumentUrl } from '../../../domain/agents/documents.js'
import type { AgentSignatureKey } from '../../../platform/agent-signature-keys.js'
import { type Component, contentDigest, httpSignature } from '../../../platform/http-signatures.js'
import type { HeaderPair } from '../protocol.js'
import { type Signer, withoutSignature } from './signer.js'

const LABEL = 'sig1'
const LIFETIME_SECS = 60
const TAG = 'web-bot-auth'
/** A signature that is handed out has one, so that its verifier can take it once. */
const NONCE_BYTES = 16
/** What a string of a structured field may have (RFC 9651 section 3.3.3), without quotes and backslashes. */
const NONCE = /;\s*nonce="([ !#-[\]-~]{1,512})"/
const OTHER_TAG = /;\s*tag="(?!web-bot-auth")/

export type HttpSigning = {
  readonly issuer: string
  /** Undefined for an agent that is not active. */
  readonly keyOf: (agentId: string) => Promise<AgentSignatureKey | undefined>
}

export const httpSignatureSigner = (
  { issuer, keyOf }: HttpSigning,
  random: Random,
): Signer<'http_signature'> => ({
  async sign(call) {
    const { agentId, body, method, host } = call
    if (agentId == null) return { tag: 'refused', outcome: NO_AGENT }
    const key = await keyOf(agentId)
    if (key === undefined) return { tag: 'refused', outcome: { tag: 'unknown_credential' } }
    const directory = `"${agentDocumentUrl(issuer, agentId, 'jwks')}"`
    const { handedOut } = call
    const isExact = handedOut === 'exact'
    const nonce = call.nonce ?? (handedOut && random.token(NONCE_BYTES))
    const [path = '', query = ''] = call.path.split(/\?(.*)/s)
    const content = body ?? new Uint8Array()
    const hasDigest = content.byteLength > 0 || (isExact && method !== 'GET' && method !== 'HEAD')
    const digest = hasDigest ? contentDigest(content) : null
    const components: Component[] = [
      ['"@authority"', host.toLowerCase()],
      ['"@method"', method],
      ['"@path"', path || '/'],
      // With a question mark alone where there is no query (RFC 9421 section 2.2.7).
      ...(isExact ? [['"@query"', `?${query}`] as const] : []),
      [`"signature-agent";key="${LABEL}"`, directory],
      ...(digest === null ? [] : [['"content-digest"', digest] as const]),
    ]
    const created = Math.floor(call.now.getTime() / 1000)
    const { input, signature } = httpSignature(key.privateKey, components, {
      created,
      expires: created + LIFETIME_SECS,
      keyid: key.kid,
      alg: 'ed25519',
      ...(nonce === undefined ? {} : { nonce }),
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
