/**
 * The device grant: a code for the device, another one for the person, and the page where the person
 * brings the two together. RFC 8628.
 *
 * The person is asked only once they have signed in to the application's tenant, and sees the code,
 * the application and where the request came from before they can say yes (sections 3.3 and 5.4). An
 * answer counts in the session that was asked.
 */
import { createHash } from 'node:crypto'
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import type { AuthorizingClientRow } from '../../../storage/oauth/applications.js'
import {
  findByUserCode,
  insertBackchannelRequest,
  type PendingRequest,
} from '../../../storage/oauth/backchannel-requests.js'
import { CoordinationUnavailable } from '../../../storage/platform/coordination/port.js'
import { activeClient } from '../clients/active-client.js'
import type { BrowserSession, BrowserSessionsProtocol } from '../../identity/sessions/protocol.js'
import { newUserCode, readUserCode, showUserCode } from '../../domain/user-code.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import type { AttemptCounts } from '../../platform/attempts.js'
import type { OAuthRefused, ProofRefused } from '../tokens/protocol.js'
import { type AskingNeeds, readAsking } from './request.js'
import { decide, type DecisionNeeds, grantable } from './decision.js'
import { type GuessSettings, judgeGuess } from './guesses.js'
import type { BackchannelMetrics } from './metrics.js'
import {
  type DecideDevice,
  DEVICE_GRANT,
  type DeviceDecided,
  type DevicePage,
  type DeviceQuestion,
  type DeviceStarted,
  type ShowDevice,
  type StartDevice,
} from './protocol.js'

const DEVICE_CODE_BYTES = 32
/** With a million codes waiting, one try in 25,000 meets one of them. */
const USER_CODE_TRIES = 5
const TYPED_LENGTH_SHOWN = 64
export const DEVICE_PAGE = '/oauth/device/verify'

export type DeviceNeeds = AskingNeeds &
  DecisionNeeds & {
    readonly sessions: ActorRef<BrowserSessionsProtocol>
    readonly coordination: AttemptCounts
    /** Members of [device_authorization]. */
    readonly settings: { readonly ttl_secs: number; readonly interval_secs: number }
    readonly guessing: GuessSettings
    readonly metrics: BackchannelMetrics
  }

export async function startDevice(
  needs: DeviceNeeds,
  { request, address }: StartDevice,
  context: MessageContext,
): Promise<DeviceStarted | OAuthRefused | ProofRefused> {
  const { database, clock, random, settings, metrics } = needs
  const asking = await readAsking(needs, request, DEVICE_GRANT, context)
  if (asking.tag !== 'asking') return asking
  const { client, scopes, audience } = asking
  const { ttl_secs: expiresInSecs, interval_secs: intervalSecs } = settings
  const deviceCode = random.token(DEVICE_CODE_BYTES)
  const now = clock.now()
  const row = {
    tenantId: client.tenantId,
    id: random.uuid(),
    kind: 'device',
    codeSha256: createHash('sha256').update(deviceCode, 'utf8').digest(),
    clientId: client.id,
    scopes,
    audience,
    levelAsked: 1,
    bindingMessage: null,
    askedFrom: address,
    intervalSecs,
    subject: null,
    createdAt: now,
    expiresAt: new Date(now.getTime() + expiresInSecs * 1000),
  } as const
  for (let tries = 0; tries < USER_CODE_TRIES; tries += 1) {
    const userCode = newUserCode((count) => random.bytes(count))
    const inserted = await database.tenant(
      client.tenantId,
      (tx) => insertBackchannelRequest(tx, { ...row, userCode }),
      { signal: context.signal },
    )
    if (!inserted) continue
    metrics.count('device', 'started')
    return {
      tag: 'started',
      deviceCode,
      userCode: showUserCode(userCode),
      expiresInSecs,
      intervalSecs,
    }
  }
  throw new Error('no user code is free')
}

export async function showDevice(
  needs: DeviceNeeds,
  message: ShowDevice,
  context: MessageContext,
): Promise<DevicePage> {
  const { typed, uiLocales } = message
  if (typed === null) return { tag: 'code_asked', uiLocales }
  const found = await find(needs, { ...message, typed }, context)
  if (found.tag !== 'found') return found
  const session = await signedIn(needs, found, message, context)
  if ('tag' in session) return session
  return { tag: 'asked', ...questionOf(found, session, uiLocales) }
}

export async function decideDevice(
  needs: DeviceNeeds,
  message: DecideDevice,
  context: MessageContext,
): Promise<DevicePage | DeviceDecided> {
  const { action, uiLocales } = message
  const found = await find(needs, message, context)
  if (found.tag !== 'found') return found
  const session = await signedIn(needs, found, message, context)
  if ('tag' in session) return session
  const question = questionOf(found, session, uiLocales)
  const approved = action === 'approve'
  // Nobody was asked yet, or somebody else was, or the person signed in anew meanwhile; or the
  // application may have more by now than the question named.
  const unseen = approved && !question.scopes.every((scope) => message.scopes.includes(scope))
  if (action === null || session.id !== message.sessionId || unseen)
    return { tag: 'asked', ...question }
  if (approved && question.scopes.length === 0) return { tag: 'nothing_to_grant', ...question }
  const { request, client } = found
  const done = await decide(
    needs,
    {
      kind: 'device',
      request,
      client,
      decider: session,
      scopes: approved ? question.scopes : null,
      address: message.address,
    },
    context,
  )
  if (!done) return { tag: 'code_unknown', typed: question.userCode, uiLocales }
  needs.metrics.count('device', approved ? 'approved' : 'denied')
  const { tenant, clientName } = question
  return { tag: 'decided', approved, tenant, clientName, uiLocales }
}

type Found = {
  readonly tag: 'found'
  readonly userCode: string
  readonly request: PendingRequest
  readonly client: AuthorizingClientRow
}

/** The request that waits under a code; a wrong code counts against the address it came from. */
async function find(
  { database, clock, coordination, guessing, metrics }: DeviceNeeds,
  { typed, address, uiLocales }: ShowDevice & { readonly typed: string },
  context: MessageContext,
): Promise<Found | Extract<DevicePage, { tag: 'code_unknown' | 'guesses_spent' | 'busy' }>> {
  const unknown = (): DevicePage & { tag: 'code_unknown' } => {
    metrics.count('device', 'code_unknown')
    return { tag: 'code_unknown', typed: typed.slice(0, TYPED_LENGTH_SHOWN), uiLocales }
  }
  const userCode = readUserCode(typed)
  // Nothing is learned by what cannot be a code.
  if (userCode === null) return unknown()
  try {
    const from = { address, signal: context.signal }
    const guess = await judgeGuess(coordination, guessing, from, async (wrong) => {
      // The tenant of a code is not known before the code is: the look-up crosses tenants.
      const request = await database.system((tx) => findByUserCode(tx, userCode, clock.now()), {
        signal: context.signal,
      })
      const client =
        request === undefined ? null : await activeClient(database, request.clientId, context)
      if (request !== undefined && client !== null)
        return { tag: 'found', userCode, request, client } as const
      await wrong()
      return unknown()
    })
    if (guess.tag === 'judged') return guess.outcome
    metrics.count('device', 'guesses_spent')
    context.log.warn({ address }, 'too many wrong user codes')
    return { tag: 'guesses_spent', retryAfterSecs: guess.retryAfterSecs, uiLocales }
  } catch (error) {
    if (error instanceof CoordinationUnavailable) return { tag: 'busy' }
    throw error
  }
}

async function signedIn(
  { sessions }: DeviceNeeds,
  { userCode, client }: Found,
  { sessionToken, uiLocales }: ShowDevice,
  context: MessageContext,
): Promise<BrowserSession | (DevicePage & { tag: 'interaction' })> {
  const query = new URLSearchParams({ user_code: showUserCode(userCode) })
  if (uiLocales !== null) query.set('ui_locales', uiLocales.slice(0, 256))
  const verdict = await sessions.ask(
    'demand',
    {
      token: sessionToken,
      tenantId: client.tenantId,
      demand: { level: 1 },
      flow: {
        returnTo: `${DEVICE_PAGE}?${query.toString()}`,
        reason: { tag: 'application', name: client.name },
        ...(uiLocales === null ? {} : { uiLocales }),
      },
    },
    context,
  )
  if (verdict.tag === 'met') return verdict.session
  return { tag: 'interaction', location: verdict.location }
}

function questionOf(
  { userCode, request, client }: Found,
  session: BrowserSession,
  uiLocales: string | null,
): DeviceQuestion {
  return {
    userCode: showUserCode(userCode),
    sessionId: session.id,
    tenant: brandingOf(client.tenantId, client.tenantName, client.tenantSettings),
    clientName: client.name,
    email: session.email,
    scopes: grantable(request.scopes, client, session.role),
    askedFrom: request.askedFrom,
    askedAt: request.createdAt,
    uiLocales,
  }
}
