/**
 * CIBA in poll mode: an application requests authentication, and the user answers in their inbox (CIBA
 * Core 1.0 sections 7 and 13).
 *
 * The response never tells whether the user exists: a request for an unknown user is stored like any
 * other, and expires unanswered.
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { ActorRef } from '../../../../runtime/kernel/actor.js'
import { insertBackchannelRequest } from '../../../../storage/oauth/backchannel-requests.js'
import type { AssuranceLevel } from '../../../domain/assurance.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import type { SigningKeysProtocol } from '../../signing-keys/protocol.js'
import type { Documents } from '../../../platform/outbound-http/documents.js'
import type { OAuthRefused, ProofRefused, TokenRequest } from '../protocol.js'
import { refuse } from '../refusals.js'
import { type ClientRequest, type ClientRequestNeeds, withClientRequest } from './request.js'
import { readCibaRequest } from './ciba-parameters.js'
import type { DecisionNeeds } from './decision.js'
import { type HintNeeds, subjectOf } from './hints.js'
import type { BackchannelMetrics } from './metrics.js'
import { inTenant } from '../../../platform/in-tenant.js'
import type { CibaRefused, CibaStarted } from './protocol.js'
import { CIBA } from '../../../domain/oauth/grant-types.js'

const AUTH_REQ_ID_BYTES = 32

export type CibaNeeds = ClientRequestNeeds &
  DecisionNeeds &
  HintNeeds & {
    readonly keys: ActorRef<SigningKeysProtocol>
    readonly documents: Pick<Documents, 'fetch'>
    readonly settings: { readonly interval_secs: number }
    /** The highest assurance level that a sign-in can reach. */
    readonly levelMax: AssuranceLevel
    readonly metrics: BackchannelMetrics
  }

export function authorizeBackchannel(
  needs: CibaNeeds,
  request: TokenRequest,
  context: MessageContext,
): Promise<CibaStarted | CibaRefused | OAuthRefused | ProofRefused> {
  const counted = { grantType: CIBA, quota: 'ciba' } as const
  const start = (asked: ClientRequest) => startFor(needs, asked, context)
  return withClientRequest(needs, request, counted, start, context)
}

async function startFor(
  needs: CibaNeeds,
  { client, form, scopes, audience, resourceIds }: ClientRequest,
  context: MessageContext,
): Promise<CibaStarted | CibaRefused | OAuthRefused> {
  const { database, clock, random, settings, levelMax, metrics } = needs
  // CIBA section 7.1 requires client authentication. A public client may still have an old grant.
  if (client.clientType === 'public')
    return refuse(
      'invalid_client',
      'this endpoint needs client authentication',
      'client_authentication_missing',
    )
  const read = readCibaRequest(form, levelMax)
  if (read.tag !== 'read') return read
  const found = await subjectOf(needs, read.hint, client, context)
  if (found.tag !== 'subject') return found

  const { interval_secs: intervalSecs } = settings
  const { expiresInSecs } = read
  const authReqId = random.token(AUTH_REQ_ID_BYTES)
  const now = clock.now()
  await inTenant(database, client.tenantId, context, (tx) =>
    insertBackchannelRequest(tx, {
      tenantId: client.tenantId,
      id: random.uuid(),
      kind: 'ciba',
      codeSha256: sha256(authReqId),
      userCode: null,
      clientId: client.id,
      scopes,
      audience,
      resourceIds,
      levelAsked: read.level,
      bindingMessage: read.bindingMessage,
      // The address of the application's server means nothing to the user.
      askedFrom: null,
      intervalSecs,
      subject: found.sub,
      createdAt: now,
      expiresAt: new Date(now.getTime() + expiresInSecs * 1000),
    }),
  )
  metrics.count('ciba', 'started')
  return { tag: 'started', authReqId, expiresInSecs, intervalSecs }
}
