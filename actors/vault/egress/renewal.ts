/**
 * Calls with an access token. A token that the upstream rejects is not used again. If it was a cached one, and the body can
 * be sent again, the call is repeated once, with a new token.
 */
import { ByteStream } from '../../../runtime/kernel/stream.js'
import type { ManagedTokens, RejectedToken } from '../vault/protocol.js'
import type { HeldBytes } from './admission/shares.js'
import { tokenFailure } from './inject/token-failure.js'
import { TokenUnavailable, type UnsealedCredential } from './inject/unsealed-credential.js'
import type { ProxyOutcome } from './protocol.js'
import { injected, type Outgoing, type Sending, type SigningNeeds, wholeBody } from './sending.js'

const REJECTED = 401

type RenewalNeeds = Omit<SigningNeeds, 'signers'> & { readonly managed: ManagedTokens }

/** What a call with a token uses. */
type Uses = {
  readonly credentialId: string
  readonly held: HeldBytes
  /** Bytes count as they are sent. */
  readonly isMetered: boolean
  /** Gets the credential again. */
  readonly unseal: () => Promise<UnsealedCredential>
}

/** @throws {NotSent} */
export async function withToken(
  needs: RenewalNeeds,
  { request, ...outgoing }: Outgoing,
  credential: UnsealedCredential,
  token: RejectedToken,
  { credentialId, held, isMetered, unseal }: Uses,
): Promise<Sending> {
  const { tenantId } = outgoing
  const body = request.isBodyHeld === true ? await wholeBody(needs, request, held) : request.body
  const reject = (rejected: RejectedToken) =>
    needs.managed.rejected(tenantId, credentialId, rejected)
  let refusal: ProxyOutcome | null = null
  let isRenewed = false

  async function again({ status }: { readonly status: number }): Promise<Sending | null> {
    if (status !== REJECTED) return null
    await reject(token)
    if (token.isFresh || body instanceof ByteStream) return null
    const next = await unseal().catch((error: unknown) => {
      if (error instanceof TokenUnavailable && error.why.tag === 'lapsed')
        refusal = tokenFailure(error.why)
      return null
    })
    if (next === null) return null
    if (next.token === null || next.token.obtainedAt <= token.obtainedAt) {
      next.release()
      return null
    }
    isRenewed = true
    // Admission has taken the bytes of the first body alone.
    const sent = isMetered && body !== null ? ByteStream.from(body) : body
    const second = injected({ ...outgoing, request: { ...request, body: sent } }, next)
    return { ...second, release: () => next.release() }
  }

  return {
    ...injected({ ...outgoing, request: { ...request, body } }, credential),
    again,
    onAnswer(status) {
      if (status === REJECTED && isRenewed) void reject({ ...token, isFresh: true })
      return refusal
    },
  }
}
