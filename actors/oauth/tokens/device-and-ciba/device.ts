/**
 * Device authorization grant (RFC 8628): a code for the device, a code for the user, and the
 * verification page.
 *
 * The page asks for consent only after a sign-in to the application's tenant. It shows the code, the
 * application and the origin of the request first (sections 3.3 and 5.4). A decision is valid only in
 * the session in which the page was shown.
 */
import type { ActorRef, MessageContext } from '../../../../runtime/kernel/actor.js'
import type { AuthorizingClientRow } from '../../../../storage/oauth/applications.js'
import {
  findByUserCode,
  insertBackchannelRequest,
  type PendingBackchannelRequest,
} from '../../../../storage/oauth/backchannel-requests.js'
import { CoordinationUnavailable } from '../../../../storage/platform/coordination/port.js'
import { activeClient } from '../clients/active-client.js'
import type {
  BrowserSession,
  BrowserSessionsProtocol,
} from '../../../identity/sign-in/sessions/protocol.js'
import { newUserCode, readUserCode, showUserCode } from '../../../domain/user-code.js'
import { brandingOf } from '../../../domain/tenants/branding.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import type { AttemptCounts } from '../../../platform/attempts.js'
import { countGuess, type GuessSettings } from '../../../platform/user-code-guesses.js'
import { DEVICE_CODE } from '../../../domain/oauth/grant-types.js'
import type { OAuthRefused, ProofRefused, TokenRequest } from '../protocol.js'
import { type ClientRequest, type ClientRequestNeeds, withClientRequest } from './request.js'
import { decide, decidedBefore, type DecisionNeeds, grantable } from './decision.js'
import type { BackchannelMetrics } from './metrics.js'
import {
  type DecideDevice,
  type DeviceDecided,
  type DevicePage,
  type DeviceQuestion,
  type DeviceStarted,
  type ShowDevice,
} from './protocol.js'
import { inTenant } from '../../../platform/in-tenant.js'

const DEVICE_CODE_BYTES = 32
/** With a million pending codes, one try in 25,000 collides. */
const USER_CODE_TRIES = 5
const TYPED_LENGTH_SHOWN = 64
const DEVICE_PAGE = '/oauth/device/verify'

export type DeviceNeeds = ClientRequestNeeds &
  DecisionNeeds & {
    readonly sessions: ActorRef<BrowserSessionsProtocol>
    readonly coordination: AttemptCounts
    /** Members of [device_authorization]. */
    readonly settings: { readonly ttl_secs: number; readonly interval_secs: number }
    readonly guessing: GuessSettings
    readonly metrics: BackchannelMetrics
  }

export function authorizeDevice(
  needs: DeviceNeeds,
  request: TokenRequest,
  context: MessageContext,
): Promise<DeviceStarted | OAuthRefused | ProofRefused> {
  const counted = { grantType: DEVICE_CODE, quota: 'device' } as const
  const start = (asked: ClientRequest) => startFor(needs, asked, request.address, context)
  return withClientRequest(needs, request, counted, start, context)
}

async function startFor(
  { database, clock, random, settings, metrics }: DeviceNeeds,
  { client, scopes, audience, resourceIds }: ClientRequest,
  address: string,
  context: MessageContext,
): Promise<DeviceStarted> {
  const { ttl_secs: expiresInSecs, interval_secs: intervalSecs } = settings
  const deviceCode = random.token(DEVICE_CODE_BYTES)
  const now = clock.now()
  const row = {
    tenantId: client.tenantId,
    id: random.uuid(),
    kind: 'device',
    codeSha256: sha256(deviceCode),
    clientId: client.id,
    scopes,
    audience,
    resourceIds,
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
    const inserted = await inTenant(database, client.tenantId, context, (tx) =>
      insertBackchannelRequest(tx, { ...row, userCode }),
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
  throw new Error('no free user code was found')
}

export async function showDeviceVerification(
  needs: DeviceNeeds,
  message: ShowDevice,
  context: MessageContext,
): Promise<DevicePage> {
  const { typed, uiLocales } = message
  if (typed === null) return { tag: 'code_asked', uiLocales }
  const found = await findPending(needs, { ...message, typed }, context)
  if (found.tag !== 'found') return found
  const session = await requireSession(needs, found, message, context)
  if ('tag' in session) return session
  return { tag: 'asked', ...consentPageOf(found, session, uiLocales) }
}

export async function verifyDevice(
  needs: DeviceNeeds,
  message: DecideDevice,
  context: MessageContext,
): Promise<DevicePage | DeviceDecided> {
  const before = () =>
    message.action === null ? null : deviceDecidedBefore(needs, message, context)
  const earlier = await before()
  if (earlier !== null) return earlier
  const outcome = await decidePending(needs, message, context)
  // A concurrent form decided in between.
  return outcome.tag === 'code_unknown' ? ((await before()) ?? outcome) : outcome
}

async function decidePending(
  needs: DeviceNeeds,
  message: DecideDevice,
  context: MessageContext,
): Promise<DevicePage | DeviceDecided> {
  const { action, uiLocales } = message
  const found = await findPending(needs, message, context)
  if (found.tag !== 'found') return found
  const session = await requireSession(needs, found, message, context)
  if ('tag' in session) return session
  const page = consentPageOf(found, session, uiLocales)
  const approved = action === 'approve'
  // Show the page again if it was not shown yet, was shown in another session, or did not show all
  // scopes that the application can get now.
  const hasUnseenScopes = approved && !page.scopes.every((scope) => message.scopes.includes(scope))
  if (action === null || session.id !== message.sessionId || hasUnseenScopes)
    return { tag: 'asked', ...page }
  if (approved && page.scopes.length === 0) return { tag: 'nothing_to_grant', ...page }
  const { request, client } = found
  const done = await decide(
    needs,
    {
      kind: 'device',
      request,
      client,
      decider: session,
      scopes: approved ? page.scopes : null,
      address: message.address,
    },
    context,
  )
  if (!done) return { tag: 'code_unknown', typed: page.userCode, uiLocales }
  needs.metrics.count('device', approved ? 'approved' : 'denied')
  const { tenant, clientName } = page
  return { tag: 'decided', approved, tenant, clientName, uiLocales }
}

/** The outcome that this browser sent before. Its user code is free by now and may be of another request. */
async function deviceDecidedBefore(
  needs: DeviceNeeds,
  { requestId, sessionToken, uiLocales }: DecideDevice,
  context: MessageContext,
): Promise<DeviceDecided | null> {
  const read = await needs.sessions.read({ token: sessionToken }, context)
  if (read.tag !== 'open') return null
  const before = await decidedBefore(needs, read.session, requestId, context)
  if (before === null) return null
  const { approved, client } = before
  const tenant = brandingOf(client.tenantId, client.tenantName, client.tenantSettings)
  return { tag: 'decided', approved, tenant, clientName: client.name, uiLocales }
}

type PendingDevice = {
  readonly tag: 'found'
  readonly userCode: string
  readonly request: PendingBackchannelRequest
  readonly client: AuthorizingClientRow
}

/** The pending request of a user code. Wrong codes count against the client address. */
async function findPending(
  { database, clock, coordination, guessing, metrics }: DeviceNeeds,
  { typed, address, uiLocales }: ShowDevice & { readonly typed: string },
  context: MessageContext,
): Promise<
  PendingDevice | Extract<DevicePage, { tag: 'code_unknown' | 'guesses_spent' | 'busy' }>
> {
  const unknown = (): DevicePage & { tag: 'code_unknown' } => {
    metrics.count('device', 'code_unknown')
    return { tag: 'code_unknown', typed: typed.slice(0, TYPED_LENGTH_SHOWN), uiLocales }
  }
  const userCode = readUserCode(typed)
  // A malformed code reveals nothing, so it does not count.
  if (userCode === null) return unknown()
  try {
    const from = { address, signal: context.signal }
    const guess = await countGuess(coordination, guessing, from, async (wrong) => {
      // The tenant is unknown until the code is found, so the look-up crosses tenants.
      const request = await database.system(
        (tx) => findByUserCode(tx, userCode, clock.now()),
        context,
      )
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

async function requireSession(
  { sessions }: DeviceNeeds,
  { userCode, client }: PendingDevice,
  { sessionToken, uiLocales }: ShowDevice,
  context: MessageContext,
): Promise<BrowserSession | (DevicePage & { tag: 'interaction' })> {
  const query = new URLSearchParams({ user_code: showUserCode(userCode) })
  if (uiLocales !== null) query.set('ui_locales', uiLocales.slice(0, 256))
  const verdict = await sessions.demand(
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

function consentPageOf(
  { userCode, request, client }: PendingDevice,
  session: BrowserSession,
  uiLocales: string | null,
): DeviceQuestion {
  return {
    requestId: request.id,
    userCode: showUserCode(userCode),
    sessionId: session.id,
    tenant: brandingOf(client.tenantId, client.tenantName, client.tenantSettings),
    clientName: client.name,
    email: session.email || session.displayName,
    scopes: grantable(request, client, session),
    askedFrom: request.askedFrom,
    askedAt: request.createdAt,
    uiLocales,
  }
}
