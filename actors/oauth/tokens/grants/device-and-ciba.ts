/**
 * The device grant and CIBA: the client polls while the user decides on another device (RFC 8628
 * sections 3.4 and 3.5, OpenID Connect CIBA sections 10.1 and 11).
 *
 * An approved request is redeemed once. All checks run first, then one statement redeems the request
 * and creates its refresh family. Later polls get the error of an unknown code.
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import {
  type BackchannelKind,
  type PolledRequest,
  recordPoll,
  redeemBackchannelRequest,
} from '../../../../storage/oauth/backchannel-requests.js'
import { type Client, publicClientId } from '../clients/clients.js'
import type { OAuthForm } from '../form.js'
import { effectiveScopes } from '../issue/effective-scopes.js'
import { issuedEvent } from '../issue/issued-event.js'
import { demandsDpop, RESOURCE_NEEDS_PROOF, type ResourceLookup } from '../issue/api-resource.js'
import { downscope, resourcesOfGrant } from '../issue/downscoping.js'
import { personGrant, type GrantNeeds, signPersonTokens } from '../issue/user-tokens.js'
import { CIBA, DEVICE_CODE } from '../../../domain/oauth/grant-types.js'
import type { Issued, OAuthRefused, ProofRefused } from '../protocol.js'
import { REFRESH_TOKEN_BYTES, type RefreshProof } from './refresh-token.js'
import { refuse } from '../refusals.js'
import { sha256 } from '../../../domain/secret-hashes.js'

/** What a client waits longer after a poll that is too early (RFC 8628 section 3.5). A poll after the interval is answered. */
const SLOW_DOWN_SECS = 5

type BackchannelGrant = typeof DEVICE_CODE | typeof CIBA

/** The request kind and the form parameter of each grant type. */
const POLLED: Record<BackchannelGrant, { kind: BackchannelKind; parameter: string }> = {
  [DEVICE_CODE]: { kind: 'device', parameter: 'device_code' },
  [CIBA]: { kind: 'ciba', parameter: 'auth_req_id' },
}

type BackchannelNeeds = GrantNeeds & { readonly resources: ResourceLookup }

export const grantBackchannel =
  (grantType: BackchannelGrant) =>
  async (
    needs: BackchannelNeeds,
    client: Client,
    form: OAuthForm,
    proof: RefreshProof,
    context: MessageContext,
  ): Promise<Issued | OAuthRefused | ProofRefused> => {
    if (client.kind !== 'application' || !client.row.grantTypes.includes(grantType))
      return refuse(
        'unauthorized_client',
        'the application does not have this grant',
        'grant_not_allowed',
      )
    const { kind, parameter } = POLLED[grantType]
    const code = form.get(parameter)
    if (code === null)
      return refuse('invalid_request', `${parameter} is missing`, 'parameter_missing')
    const { database, clock } = needs
    const now = clock.now()
    const key = {
      kind,
      codeSha256: sha256(code),
      clientId: client.row.id,
      now,
    }
    // The tenant is unknown until the code is found, so the poll crosses tenants.
    const polled = await database.system((tx) => recordPoll(tx, key), context)
    const verdict = polled === undefined ? 'unknown' : judgePoll(polled, now)
    switch (verdict) {
      case 'unknown':
        return invalidGrant(parameter)
      case 'pending':
        return wait('authorization_pending', 'the user has not decided yet', polled!)
      case 'slow_down':
        return wait('slow_down', 'the last poll was too recent', polled!)
      case 'denied':
        return refuse('access_denied', 'the user denied the request', 'user_denied')
      case 'expired':
        return refuse(
          'expired_token',
          `the ${parameter} has expired: ask for a new one`,
          'request_expired',
        )
      case 'approved':
        return redeem(needs, polled as Approved, { grantType, client, form, proof }, context)
    }
  }

type PollVerdict = 'unknown' | 'pending' | 'slow_down' | 'denied' | 'expired' | 'approved'

/** Decides the outcome of a poll from its row. Pure: time is a value. */
function judgePoll(
  row: Pick<PolledRequest, 'status' | 'expiresAt' | 'tooFast' | 'standing'>,
  now: Date,
): PollVerdict {
  if (row.status === 'redeemed') return 'unknown'
  if (row.expiresAt <= now) return 'expired'
  if (row.status === 'denied') return 'denied'
  // The interval limits polls for a decision. It does not delay an approved request.
  if (row.status === 'approved') return row.standing ? 'approved' : 'unknown'
  return row.tooFast ? 'slow_down' : 'pending'
}

/** An approved request. The table guarantees that these columns are set. */
type Approved = PolledRequest & {
  readonly subject: string
  readonly level: number
  readonly amr: readonly string[]
  readonly authTime: Date
}

type Asked = {
  readonly grantType: BackchannelGrant
  readonly client: Client & { readonly kind: 'application' }
  readonly form: OAuthForm
  readonly proof: RefreshProof
}

async function redeem(
  needs: BackchannelNeeds,
  row: Approved,
  { grantType, client, form, proof: { jkt, refusal } }: Asked,
  context: MessageContext,
): Promise<Issued | OAuthRefused | ProofRefused> {
  const { commits, random, jwt, metrics, issuer } = needs
  const resources = await resourcesOfGrant(needs.resources, row, publicClientId(client), form)
  if ('tag' in resources) return resources
  if (jkt === null && demandsDpop(resources)) return refusal(RESOURCE_NEEDS_PROOF)
  const scopes = effectiveScopes(row.scopes, client, resources)
  if ('tag' in scopes) return scopes
  const whole = { audience: row.audience, authorizationDetails: null }
  const tokenScope = downscope(form, whole, { issuer, scopes, resources })
  if ('tag' in tokenScope) return tokenScope
  const refreshes = client.row.grantTypes.includes('refresh_token')
  const refreshToken = refreshes ? random.token(REFRESH_TOKEN_BYTES) : null
  const granted = personGrant(row, tokenScope, {
    grantId: row.id,
    clientId: publicClientId(client),
    sessionId: row.id,
    idTokenSessionId: row.id,
    scopes,
    level: row.level,
    claims: null,
    nonce: null,
    jkt,
  })
  const { access, grant, idToken } = await signPersonTokens(
    needs,
    granted,
    client.row.idTokenSignedResponseAlg,
    context,
  )
  const now = access.issuedAt
  const event = issuedEvent(random, grant, access, grantType, context.requestId)
  const won = await commits.commit(row.tenantId, {
    row: row.id,
    apply: async (tx) => {
      const redeemed = await redeemBackchannelRequest(tx, {
        tenantId: row.tenantId,
        id: row.id,
        // A confidential client's refresh tokens are bound to the client (RFC 9449 section 5).
        jkt: client.confidential ? null : jkt,
        refreshTokenSha256: refreshToken === null ? null : sha256(refreshToken),
        documentSha256: client.documentSha256 ?? null,
        now,
        expiresAt: new Date(now.getTime() + jwt.refresh_token_lifetime_human_secs * 1000),
      })
      return { result: redeemed, events: redeemed ? [event] : [] }
    },
  })
  // A concurrent poll redeemed it, or it expired.
  if (!won) return invalidGrant(POLLED[grantType].parameter)
  metrics.issued(grantType, 'human')
  const { accessToken, tokenType, expiresInSecs } = access
  return {
    tag: 'issued',
    accessToken,
    tokenType,
    expiresInSecs,
    scopes,
    refreshToken,
    idToken,
    authorizationDetails: null,
  }
}

const WAITS = {
  authorization_pending: 'user_undecided',
  slow_down: 'polled_too_soon',
} as const

function wait(
  error: 'authorization_pending' | 'slow_down',
  description: string,
  { intervalSecs }: PolledRequest,
): OAuthRefused {
  const retryIntervalSecs = intervalSecs + (error === 'slow_down' ? SLOW_DOWN_SECS : 0)
  return { ...refuse(error, description, WAITS[error]), retryIntervalSecs }
}

function invalidGrant(parameter: string): OAuthRefused {
  return refuse(
    'invalid_grant',
    `the ${parameter} is unknown, was used or belongs to another client`,
    'code_unknown',
  )
}
