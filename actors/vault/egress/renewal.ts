/**
 * Calls with an access token. A token that the upstream rejects is not used again. If the stored token is another one by
 * then, or can be, and the body can be sent again, the call is repeated once, with it.
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
  /** Gets the credential with another token. */
  readonly renew: (rejected: RejectedToken) => Promise<UnsealedCredential>
}

/** @throws {NotSent} */
export async function withToken(
  needs: RenewalNeeds,
  { request, ...outgoing }: Outgoing,
  credential: UnsealedCredential,
  token: RejectedToken,
  { credentialId, held, isMetered, renew }: Uses,
): Promise<Sending> {
  const { tenantId } = outgoing
  const body = request.isBodyHeld === true ? await wholeBody(needs, request, held) : request.body
  const reject = (rejected: RejectedToken) =>
    needs.managed.rejected(tenantId, credentialId, rejected)
  let refusal: ProxyOutcome | null = null
  let renewed: RejectedToken | null = null

  async function again({ status }: { readonly status: number }): Promise<Sending | null> {
    if (status !== REJECTED) return null
    const isKept = await reject(token)
    if (isKept || body instanceof ByteStream) return null
    const next = await renew(token).catch((error: unknown) => {
      if (error instanceof TokenUnavailable && error.why.tag === 'lapsed')
        refusal = tokenFailure(error.why)
      return null
    })
    if (next === null) return null
    if (next.token === null || next.token.obtainedAt.getTime() === token.obtainedAt.getTime()) {
      next.release()
      return null
    }
    renewed = next.token
    // Admission has taken the bytes of the first body alone.
    const sent = isMetered && body !== null ? ByteStream.from(body) : body
    const second = injected({ ...outgoing, request: { ...request, body: sent } }, next)
    return { ...second, release: () => next.release() }
  }

  return {
    ...injected({ ...outgoing, request: { ...request, body } }, credential),
    again,
    onAnswer(status) {
      if (status === REJECTED && renewed !== null) void reject({ ...renewed, isFresh: true })
      return refusal
    },
  }
}
