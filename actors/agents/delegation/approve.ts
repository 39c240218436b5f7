/**
 * The person approves or denies a request: pending -> approved | denied, once. An approval creates the
 * delegation. Every page load reads the request and the session again, because a redirect back to the
 * page does not prove a sign-in (docs/reference/agents.md).
 */
import { delegationIntent } from '../../domain/agents/delegation-intent.js'
import { byPerson } from '../../domain/audit.js'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import {
  decideDelegationRequest,
  findDelegationRequest,
  type ShownRequest,
} from '../../../storage/agents/delegation-requests.js'
import {
  type DelegationApproval,
  insertDelegationApproval,
} from '../../../storage/agents/delegation-approvals.js'
import { insertDelegation, lastDelegated } from '../../../storage/agents/delegations.js'
import { holdOpenSession } from '../../../storage/oauth/token-sessions.js'
import { CoordinationUnavailable } from '../../../storage/platform/coordination/port.js'
import type { BrowserSession } from '../../identity/sign-in/sessions/protocol.js'
import type { SessionDemand } from '../../domain/assurance.js'
import { isWriteScope } from '../../domain/scopes.js'
import { sha256 } from '../../domain/secret-hashes.js'
import { readUserCode } from '../../domain/user-code.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import type { DelegationNeeds, DelegationHandler } from './needs.js'
import {
  type ApprovalQuestion,
  type Busy,
  type Decided,
  type DecideRequest,
  DELEGATION_PAGE,
  type GuessesSpent,
  type RequestOver,
  type ShowRequest,
  type SignIn,
  type UnknownRequest,
} from './protocol.js'
import { approvalStatement, grantableScopes } from './rules.js'
import { countGuess } from '../../platform/user-code-guesses.js'
import { inTenant } from '../../platform/in-tenant.js'

const unknown = (typed: string): UnknownRequest => ({ tag: 'unknown_request', typed })
const OVER: RequestOver = { tag: 'request_over' }

/** `approval`: the assertion of a passkey over it, if one was needed. */
type Approved = {
  readonly scopes: readonly string[]
  readonly approval: DelegationApproval | null
}

/** An open request with the session of the person who decides on it. */
type Ready = {
  readonly tag: 'ready'
  readonly row: ShownRequest
  readonly session: BrowserSession
}

const recentMfa = ({ settings }: DelegationNeeds): SessionDemand => ({
  level: 2,
  maxAgeSecs: settings.approval_max_auth_age_secs,
})

export const showDelegation: DelegationHandler<'showDelegation'> = async (
  needs,
  message,
  context,
) => {
  const { sessionToken } = message
  const row = await find(needs, message, context)
  if ('tag' in row) return row
  if (!isOpen(needs, row)) return outcomeFor(needs, row, sessionToken, context)
  const ready = await requireSession(needs, row, sessionToken, recentMfa(needs), context)
  return ready.tag === 'ready' ? question(needs, ready, context) : ready
}

export const approveDelegation: DelegationHandler<'approveDelegation'> = async (
  needs,
  message,
  context,
) => {
  const ready = await prepare(needs, message, recentMfa(needs), context)
  if (ready.tag !== 'ready') return ready
  const { row, session } = ready
  const scopes = grantableScopes(row.scopes, session)
  if (scopes.length === 0)
    return { tag: 'nothing_held', asked: await question(needs, ready, context) }
  const approval = await signedApproval(needs, ready, scopes, message.credential, context)
  if (approval === 'wanted')
    return { tag: 'passkey_wanted', asked: await question(needs, ready, context) }
  if (await decide(needs, ready, { scopes, approval }, message.address, context))
    needs.metrics.countStep('approved')
  return { tag: 'back', location: `${DELEGATION_PAGE}/${row.userCode}` }
}

export const denyDelegation: DelegationHandler<'denyDelegation'> = async (
  needs,
  message,
  context,
) => {
  const ready = await prepare(needs, message, { level: 1 }, context)
  if (ready.tag !== 'ready') return ready
  if (await decide(needs, ready, null, message.address, context)) needs.metrics.countStep('denied')
  return { tag: 'back', location: `${DELEGATION_PAGE}/${ready.row.userCode}` }
}

/** What a passkey of the person signs. Null: the approval needs no passkey. */
function statementOf({ row, session }: Ready, scopes: readonly string[]): string | null {
  if (session.confined || !scopes.some(isWriteScope)) return null
  return approvalStatement(row, session.sub, scopes)
}

/** The assertion over the approval. `wanted`: it is missing or invalid. Null: the person has no passkey, or none is needed. */
async function signedApproval(
  { browserSessions, clock }: DelegationNeeds,
  ready: Ready,
  scopes: readonly string[],
  credential: string,
  context: MessageContext,
): Promise<DelegationApproval | 'wanted' | null> {
  const statement = statementOf(ready, scopes)
  if (statement === null) return null
  const { tenantId, accountId } = ready.session
  const message = { tenantId, accountId, statement, credential }
  const answer = await browserSessions.signStatement(message, context)
  if (answer.tag === 'signed') return { ...answer.signed, approvedAt: clock.now() }
  return answer.tag === 'wrong' ? 'wanted' : null
}

/** An open request with a session that satisfies `demand` (assurance level and age). */
async function prepare(
  needs: DelegationNeeds,
  message: DecideRequest,
  demand: SessionDemand,
  context: MessageContext,
): Promise<Ready | SignIn | NotFound | RequestOver | { tag: 'back'; location: string }> {
  const { sessionToken, sessionId } = message
  const row = await find(needs, message, context)
  if ('tag' in row) return row
  const back = { tag: 'back', location: `${DELEGATION_PAGE}/${row.userCode}` } as const
  if (!isOpen(needs, row)) {
    // A double click: the page shows the outcome of the first one.
    const outcome = await outcomeFor(needs, row, sessionToken, context)
    return outcome.tag === 'decided' ? back : outcome
  }
  const ready = await requireSession(needs, row, sessionToken, demand, context)
  // Another account signed in after the page was shown: show the page again.
  return ready.tag === 'ready' && ready.session.id !== sessionId ? back : ready
}

type NotFound = UnknownRequest | GuessesSpent | Busy

/** The request of a user code. Wrong codes count against the client address. */
async function find(
  { database, coordination, guessing }: DelegationNeeds,
  { userCode, countedFor: address }: ShowRequest,
  context: MessageContext,
): Promise<ShownRequest | NotFound> {
  const code = readUserCode(userCode)
  // A malformed code reveals nothing, so it does not count.
  if (code === null) return unknown(userCode)
  try {
    const from = { address, signal: context.signal }
    const guess = await countGuess(coordination, guessing, from, async (wrong) => {
      const row = await database.system((tx) => findDelegationRequest(tx, code), context)
      if (row !== undefined) return row
      await wrong()
      return unknown(userCode)
    })
    if (guess.tag === 'judged') return guess.outcome
    context.log.warn({ address }, 'too many wrong user codes')
    return { tag: 'guesses_spent', retryAfterSecs: guess.retryAfterSecs }
  } catch (error) {
    if (error instanceof CoordinationUnavailable) return { tag: 'busy' }
    throw error
  }
}

function isOpen(
  { clock }: DelegationNeeds,
  { status, expiresAt, standing }: ShownRequest,
): boolean {
  return status === 'pending' && expiresAt > clock.now() && standing
}

/** Only the person who decided sees the outcome; for other sessions the request is over. */
async function outcomeFor(
  { browserSessions }: DelegationNeeds,
  row: ShownRequest,
  token: string | null,
  context: MessageContext,
): Promise<Decided | RequestOver> {
  if (row.decidedBy === null) return OVER
  const read = await browserSessions.read({ token }, context)
  if (read.tag !== 'open') return OVER
  const { tenantId, sub } = read.session
  if (tenantId !== row.tenantId || sub !== row.decidedBy) return OVER
  const decision = row.status === 'denied' ? 'denied' : 'approved'
  return { tag: 'decided', tenant: brandingOfTenant(row), agentName: row.agentName, decision }
}

async function requireSession(
  { browserSessions }: DelegationNeeds,
  row: ShownRequest,
  token: string | null,
  demand: SessionDemand,
  context: MessageContext,
): Promise<Ready | SignIn> {
  const flow = {
    returnTo: `${DELEGATION_PAGE}/${row.userCode}`,
    reason: { tag: 'agent', name: row.agentName },
  } as const
  const message = { token, tenantId: row.tenantId, demand, flow }
  const verdict = await browserSessions.demand(message, context)
  return verdict.tag === 'met' ? { tag: 'ready', row, session: verdict.session } : verdict
}

/** Stores the decision and its audit event. False when a concurrent decision came first. */
async function decide(
  { database, clock, random, settings }: DelegationNeeds,
  { row, session }: Ready,
  approved: Approved | null,
  address: string,
  { requestId }: MessageContext,
): Promise<boolean> {
  const now = clock.now()
  const { tenantId, id, purpose, audience } = row
  const { scopes, approval } = approved ?? { scopes: row.scopes, approval: null }
  const decision = approved === null ? 'denied' : 'approved'
  // As the delegation will have it when the agent gets its token.
  const expiresAt = new Date(now.getTime() + settings.delegation_ttl_secs * 1000)
  return database.tenant(tenantId, async (tx) => {
    // The grantable scopes were read from the session, so it must still be open.
    if (!(await holdOpenSession(tx, tenantId, session.id))) return false
    if (!(await decideDelegationRequest(tx, row, decision, session.sub, now))) return false
    if (approved !== null) {
      await insertDelegation(tx, {
        tenantId,
        id,
        agentId: row.agentId,
        agentName: row.agentName,
        purpose,
        subject: session.sub,
        organizationId: session.organizationId,
        scopes,
        audience,
        level: session.level,
        amr: session.amr,
        authTime: session.authTime,
        createdAt: now,
        // The agent must fetch its token before the request expires; the lifetime starts then.
        expiresAt: row.expiresAt,
      })
      if (approval !== null) await insertDelegationApproval(tx, tenantId, id, approval)
    }
    appendAudit(tx, [
      {
        ...byPerson(session, address),
        id: random.uuid(),
        tenantId,
        type: `admin.delegation.${decision}`,
        occurredAt: now,
        delegationId: approved === null ? null : id,
        delegation: approved && delegationIntent({ id, purpose, scopes, audience, expiresAt }),
        resource: { type: 'delegation_request', id },
        outcome: approved === null ? 'denied' : 'success',
        requestId: requestId ?? null,
        data: {
          agent_id: row.agentId,
          audience,
          ...(purpose !== null && { purpose }),
          scope: scopes.join(' '),
          ...(approval === null ? {} : signedWith(approval)),
        },
      },
    ])
    return true
  })
}

/** The passkey that signed an approval, and the hash of what it signed, for the audit log. */
const signedWith = ({ credentialId, statement }: DelegationApproval) => ({
  passkey: Buffer.from(credentialId).toString('base64url'),
  statement_sha256: Buffer.from(sha256(statement)).toString('base64url'),
})

async function optionsOf(
  { browserSessions }: DelegationNeeds,
  ready: Ready,
  scopes: readonly string[],
  context: MessageContext,
): Promise<object | null> {
  const statement = statementOf(ready, scopes)
  if (statement === null) return null
  const { accountId } = ready.session
  const answer = await browserSessions.getStatementOptions({ accountId, statement }, context)
  return answer.tag === 'options' ? answer.options : null
}

async function question(
  needs: DelegationNeeds,
  ready: Ready,
  context: MessageContext,
): Promise<ApprovalQuestion> {
  const { database, clock, settings } = needs
  const { row, session } = ready
  const { tenantId, agentId } = row
  const held = grantableScopes(row.scopes, session)
  const of = { tenantId, agentId, subject: session.sub }
  return {
    tag: 'asked',
    tenant: brandingOfTenant(row),
    email: session.email || session.displayName,
    sessionId: session.id,
    userCode: row.userCode,
    agentName: row.agentName,
    agentId,
    keyFingerprint: row.keyFingerprint,
    address: row.address,
    askedAt: row.createdAt,
    purpose: row.purpose,
    audience: row.audience,
    audienceName: row.audienceName,
    scopes: row.scopes.map((name) => ({ name, held: held.includes(name) })),
    lifetimeSecs: settings.delegation_ttl_secs,
    seenAt: clock.now(),
    agentSince: row.agentSince,
    agentDomain: row.agentDomain,
    passkeyOptions: await optionsOf(needs, ready, held, context),
    lastDelegatedAt: await inTenant(database, tenantId, context, (tx) => lastDelegated(tx, of)),
  }
}

const brandingOfTenant = ({ tenantId, tenantName, tenantSettings }: ShownRequest) =>
  brandingOf(tenantId, tenantName, tenantSettings)
