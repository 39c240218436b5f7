/** The page on which a person connects an account: approve leads to the provider. */
import { createHash } from 'node:crypto'
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import {
  beginConnection,
  closeConnectionRequest,
  connectionVerifierContext,
  type ConnectionPage,
  findConnectionOfCode,
} from '../../../../storage/vault/connections.js'
import { findConnector, type SecretConnector } from '../../../../storage/vault/connectors.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { brandingOf } from '../../../domain/tenants/branding.js'
import {
  providerTitle,
  scopeParameterOf,
  scopeSeparatorOf,
} from '../../../domain/vault/connector-templates.js'
import { eventContext } from '../../../domain/events.js'
import type { BrowserSession } from '../../../identity/sign-in/sessions/protocol.js'
import { inTenant } from '../../../platform/in-tenant.js'
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'
import { agreedOf } from './endpoints.js'
import { connectionEvent, personAsCaller } from './events.js'
import type { ConnectionsHandler, ConnectionsNeeds } from './needs.js'
import {
  CONNECT_PAGE,
  type ConnectOutcome,
  type ConnectQuestion,
  type ConnectRefused,
  type DecideConnect,
  type ShowConnect,
  type SignIn,
} from './protocol.js'
import { returnAddress } from './request.js'

const SECRET_BYTES = 32
/** An hour, a day, a week, 30 and 90 days. */
const CHOICES = [3_600, 86_400, 604_800, 2_592_000, 7_776_000]
const UNKNOWN: ConnectRefused = { tag: 'refused', why: 'unknown' }

/** An open request, the connector, and the session of its person. */
type Ready = {
  readonly tag: 'ready'
  readonly row: ConnectionPage
  readonly connector: SecretConnector
  readonly session: BrowserSession
}

export const showConnect: ConnectionsHandler<'showConnect'> = async (needs, message, context) => {
  const ready = await prepare(needs, message, true, context)
  return ready.tag === 'ready' ? question(needs, ready) : ready
}

export const approveConnect: ConnectionsHandler<'approveConnect'> = async (
  needs,
  message,
  context,
) => {
  const { clock, random, sealer, issuer } = needs
  const ready = await decided(needs, message, true, context)
  if (ready.tag !== 'ready') return ready
  const { row, connector, session } = ready
  if (message.agreed !== agreedOf(connector)) return showAgain(message)
  const now = clock.now()
  const state = random.token(SECRET_BYTES)
  const verifier = connector.pkce ? random.token(SECRET_BYTES) : null
  const departure: Departure = { verifier, agreed: message.agreed }
  const bytes = Buffer.from(JSON.stringify(departure), 'utf8')
  const departureSealed = await sealer.seal(row.tenantId, connectionVerifierContext(row.id), bytes)
  const began = await inTenant(needs.database, row.tenantId, context, (tx) =>
    beginConnection(tx, row, {
      stateSha256: sha256(state),
      sessionId: session.id,
      verifierSealed: departureSealed,
      ...shortened(row, message, now),
      now,
    }),
  )
  if (!began) return outcomeOf(row, 'over', null)
  const location = new URL(connector.authorizationEndpoint)
  const { searchParams: query } = location
  for (const [name, value] of Object.entries(connector.authorizationParameters))
    query.set(name, value)
  query.set('response_type', 'code')
  query.set('client_id', connector.clientId)
  query.set('redirect_uri', `${issuer}${CONNECT_PAGE}/callback`)
  query.set('state', state)
  if (row.scopes.length > 0) {
    const { template } = connector
    query.set(scopeParameterOf(template), row.scopes.join(scopeSeparatorOf(template)))
  }
  if (verifier !== null) {
    query.set('code_challenge', createHash('sha256').update(verifier).digest('base64url'))
    query.set('code_challenge_method', 'S256')
  }
  return { tag: 'to_provider', location: location.href }
}

/** What a person who is at the provider comes back to. */
type Departure = {
  /** Null without PKCE. */
  readonly verifier: string | null
  /** `agreedOf` the connector: the code of another is not sent. */
  readonly agreed: string
}

export async function departureOf(
  sealer: Sealer,
  { tenantId, id }: ConnectionPage,
  sealed: Uint8Array,
): Promise<Departure> {
  const bytes = await sealer.open(tenantId, connectionVerifierContext(id), sealed)
  return JSON.parse(Buffer.from(bytes).toString('utf8')) as Departure
}

export const denyConnect: ConnectionsHandler<'denyConnect'> = async (needs, message, context) => {
  const ready = await decided(needs, message, false, context)
  if (ready.tag !== 'ready') return ready
  const { row, session } = ready
  return deny(needs, row, session, message.address, context)
}

/** The person or the provider says no. */
export async function deny(
  needs: ConnectionsNeeds,
  row: ConnectionPage,
  session: BrowserSession,
  address: string,
  context: MessageContext,
): Promise<ConnectOutcome> {
  const by = eventContext(needs, personAsCaller(session, address), context)
  await inTenant(needs.database, row.tenantId, context, async (tx) => {
    const closed = await closeConnectionRequest(tx, row, 'denied', by.now)
    if (closed !== undefined)
      appendEvents(tx, [connectionEvent('vault.connection.denied', closed, by)])
  })
  return outcomeOf(row, 'denied', returnAddress(row, 'denied'))
}

/** Limits that the person has lowered. Others stay as they were asked for. */
function shortened(
  { maxBytes, grantExpiresAt }: ConnectionPage,
  chosen: { readonly lasts: string; readonly maxBytes: string },
  now: Date,
) {
  const bytes = /^[1-9]\d{0,14}$/.test(chosen.maxBytes) ? Number(chosen.maxBytes) : null
  const secs = CHOICES.find((choice) => String(choice) === chosen.lasts)
  const until = secs === undefined ? null : new Date(now.getTime() + secs * 1000)
  return {
    maxBytes: bytes === null ? maxBytes : Math.min(bytes, maxBytes ?? bytes),
    grantExpiresAt:
      until === null || (grantExpiresAt !== null && grantExpiresAt < until)
        ? grantExpiresAt
        : until,
  }
}

/** As `prepare`, for the session that loaded the page. */
async function decided(
  needs: ConnectionsNeeds,
  message: DecideConnect,
  isApproval: boolean,
  context: MessageContext,
): Promise<Ready | ConnectOutcome | SignIn | ConnectRefused> {
  const ready = await prepare(needs, message, isApproval, context)
  if (ready.tag !== 'ready' || ready.session.id === message.sessionId) return ready
  return showAgain(message)
}

/** Another session began after the page was shown, or the connector changed. */
const showAgain = ({ code }: ShowConnect): SignIn => ({
  tag: 'sign_in',
  location: `${CONNECT_PAGE}/${code}`,
})

async function prepare(
  needs: ConnectionsNeeds,
  { code, sessionToken: token }: ShowConnect,
  isApproval: boolean,
  context: MessageContext,
): Promise<Ready | ConnectOutcome | SignIn | ConnectRefused> {
  const row = await needs.database.system((tx) => findConnectionOfCode(tx, code), context)
  if (row === undefined) return UNKNOWN
  const read = await needs.browserSessions.read({ token }, context)
  const session =
    read.tag === 'open' && read.session.tenantId === row.tenantId ? read.session : null
  if (session !== null && session.sub !== row.subject) return { tag: 'refused', why: 'other' }
  const connector = await inTenant(needs.database, row.tenantId, context, (tx) =>
    findConnector(tx, row.tenantId, row.connectorId),
  )
  if (connector === undefined || !isOpen(row, needs.clock.now()))
    return session === null ? outcomeOf(row, 'over', null) : outcomeOf(row, resultOf(row), null)
  const strong = isApproval && row.agentId !== null
  const verdict = await needs.browserSessions.demand(
    {
      token,
      tenantId: row.tenantId as BrowserSession['tenantId'],
      sub: row.subject,
      demand: strong ? { level: 2, maxAgeSecs: needs.maxAuthAgeSecs } : { level: 1 },
      flow: {
        returnTo: `${CONNECT_PAGE}/${code}`,
        reason: { tag: row.agentId === null ? 'application' : 'agent', name: nameOf(row) },
        formTargets: [new URL(connector.authorizationEndpoint).origin],
      },
    },
    context,
  )
  return verdict.tag === 'met'
    ? { tag: 'ready', row, connector, session: verdict.session }
    : verdict
}

const isOpen = ({ status, codeExpiresAt }: ConnectionPage, now: Date) =>
  (status === 'pending' || status === 'needs_reauthorization') &&
  codeExpiresAt !== null &&
  codeExpiresAt > now

const resultOf = ({ status }: ConnectionPage): ConnectOutcome['outcome'] =>
  status === 'active' || status === 'denied' ? status : 'over'

const nameOf = ({ agentName, requesterName, requesterType }: ConnectionPage) =>
  (requesterType === 'agent' ? agentName : requesterName) ?? ''

export function outcomeOf(
  row: ConnectionPage,
  outcome: ConnectOutcome['outcome'],
  location: string | null,
): ConnectOutcome {
  return {
    tag: 'outcome',
    tenant: tenantOf(row),
    outcome,
    provider: row.connector,
    name: row.agentName ?? nameOf(row),
    location,
  }
}

export const tenantOf = ({ tenantId, tenantName, tenantSettings }: ConnectionPage) =>
  brandingOf(tenantId, tenantName, tenantSettings)

function question(
  { clock }: ConnectionsNeeds,
  { row, connector, session }: Ready,
): ConnectQuestion {
  const now = clock.now()
  const left = row.grantExpiresAt === null ? Infinity : row.grantExpiresAt.getTime() - now.getTime()
  return {
    tag: 'asked',
    tenant: tenantOf(row),
    email: session.email || session.displayName,
    sessionId: session.id,
    agreed: agreedOf(connector),
    code: row.code!,
    agentName: row.agentId === null ? null : (row.agentName ?? ''),
    requesterName: nameOf(row),
    provider: providerTitle(connector),
    scopes: row.scopes,
    hosts: connector.allowedHosts,
    reason: row.reason,
    maxBytes: row.maxBytes,
    expiresAt: row.grantExpiresAt,
    choices: CHOICES.filter((secs) => secs * 1000 < left),
    seenAt: now,
    target: new URL(connector.authorizationEndpoint).origin,
  }
}
