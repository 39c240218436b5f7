/**
 * OpenID Connect Client-Initiated Backchannel Authentication: an application asks for a person, and
 * the person answers in their inbox. Poll mode. CIBA Core 1.0 sections 7 and 13; decisions.md 7.3.
 *
 * Whether the person exists is told to nobody: a request for somebody unknown is written down like
 * any other, waits, and ends without an answer.
 */
import { createHash } from 'node:crypto'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { ActorRef } from '../../../runtime/kernel/actor.js'
import { insertBackchannelRequest } from '../../../storage/oauth/backchannel-requests.js'
import type { AssuranceLevel } from '../../domain/assurance.js'
import type { KeysProtocol } from '../signing-keys/protocol.js'
import type { Documents } from '../../platform/outbound-http/documents.js'
import type { OAuthRefused, ProofRefused, TokenRequest } from '../tokens/protocol.js'
import { refuse } from '../tokens/refusals.js'
import { type AskingNeeds, readAsking } from './request.js'
import { readCibaRequest } from './ciba-parameters.js'
import type { DecisionNeeds } from './decision.js'
import { type HintNeeds, subjectOf } from './hints.js'
import type { BackchannelMetrics } from './metrics.js'
import { CIBA_GRANT, type CibaRefused, type CibaStarted } from './protocol.js'

const AUTH_REQ_ID_BYTES = 32

export type CibaNeeds = AskingNeeds &
  DecisionNeeds &
  HintNeeds & {
    readonly keys: ActorRef<KeysProtocol>
    readonly documents: Pick<Documents, 'fetch'>
    readonly settings: { readonly interval_secs: number }
    /** The highest that people can reach here. */
    readonly levelMax: AssuranceLevel
    readonly metrics: BackchannelMetrics
  }

export async function startCiba(
  needs: CibaNeeds,
  request: TokenRequest,
  context: MessageContext,
): Promise<CibaStarted | CibaRefused | OAuthRefused | ProofRefused> {
  const { database, clock, random, settings, levelMax, metrics } = needs
  const asking = await readAsking(needs, request, CIBA_GRANT, context)
  if (asking.tag !== 'asking') return asking
  const { client, form, scopes, audience } = asking
  // Section 7.1: the client must authenticate. No such client has the grant, but it may have had.
  if (client.clientType === 'public')
    return refuse('invalid_client', 'this endpoint needs client authentication')
  const read = readCibaRequest(form, levelMax)
  if (read.tag !== 'read') return read
  const found = await subjectOf(needs, read.hint, client, context)
  if (found.tag !== 'meant') return found

  const { interval_secs: intervalSecs } = settings
  const { expiresInSecs } = read
  const authReqId = random.token(AUTH_REQ_ID_BYTES)
  const now = clock.now()
  await database.tenant(
    client.tenantId,
    (tx) =>
      insertBackchannelRequest(tx, {
        tenantId: client.tenantId,
        id: random.uuid(),
        kind: 'ciba',
        codeSha256: createHash('sha256').update(authReqId, 'utf8').digest(),
        userCode: null,
        clientId: client.id,
        scopes,
        audience,
        levelAsked: read.level,
        bindingMessage: read.bindingMessage,
        // The address of the application's server would tell the person nothing.
        askedFrom: null,
        intervalSecs,
        subject: found.sub,
        createdAt: now,
        expiresAt: new Date(now.getTime() + expiresInSecs * 1000),
      }),
    { signal: context.signal },
  )
  metrics.count('ciba', 'started')
  return { tag: 'started', authReqId, expiresInSecs, intervalSecs }
}
