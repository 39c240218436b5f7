/**
 * The person's side. pending -> approved | denied, once; an approval makes the delegation. What the
 * page shows is decided from the rows and the session of the moment: that a browser came back proves
 * nothing. decisions.md section 3, 20 and 21, delegation page.
 */
import { byPerson } from '../../domain/audit.js'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import {
  decideDelegationRequest,
  findDelegationRequest,
  type ShownRequest,
} from '../../../storage/agents/delegation-requests.js'
import { insertDelegation, lastDelegated } from '../../../storage/agents/delegations.js'
import { holdOpenSession } from '../../../storage/oauth/token-sessions.js'
import type { BrowserSession } from '../../identity/sessions/protocol.js'
import type { SessionDemand } from '../../domain/assurance.js'
import { readUserCode } from '../../domain/user-code.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import type { DelegationNeeds } from './needs.js'
import type {
  Asked,
  Decided,
  DecideRequest,
  DelegationProtocol,
  RequestOver,
  ShowRequest,
  SignIn,
  UnknownRequest,
} from './protocol.js'
import { heldScopes } from './rules.js'

const UNKNOWN: UnknownRequest = { tag: 'unknown_request' }
const OVER: RequestOver = { tag: 'request_over' }
export const PAGE_PATH = '/device/delegation'

type Reply<K extends 'show' | 'approve' | 'deny'> = Promise<DelegationProtocol[K]['reply']>
type Met = { readonly tag: 'met'; readonly row: ShownRequest; readonly session: BrowserSession }

export function deciding(needs: DelegationNeeds) {
  const { database, clock, random, browserSessions, metrics, settings } = needs
  const present: SessionDemand = { level: 2, maxAgeSecs: settings.approval_max_auth_age_secs }

  async function find(
    typed: string,
    { signal }: MessageContext,
  ): Promise<ShownRequest | undefined> {
    const code = readUserCode(typed)
    if (code === null) return undefined
    return database.system((tx) => findDelegationRequest(tx, code), { signal })
  }

  const isOpen = ({ status, expiresAt, standing }: ShownRequest) =>
    status === 'pending' && expiresAt > clock.now() && standing

  /** A decided request is shown to the person who decided, and is over for everybody else. */
  async function outcomeFor(
    row: ShownRequest,
    token: string | null,
    context: MessageContext,
  ): Promise<Decided | RequestOver> {
    if (row.decidedBy === null) return OVER
    const read = await browserSessions.ask('read', { token }, context)
    if (read.tag !== 'open') return OVER
    const { tenantId, sub } = read.session
    if (tenantId !== row.tenantId || sub !== row.decidedBy) return OVER
    const decision = row.status === 'denied' ? 'denied' : 'approved'
    return { tag: 'decided', tenant: faceOfTenant(row), agentName: row.agentName, decision }
  }

  async function demanded(
    row: ShownRequest,
    token: string | null,
    demand: SessionDemand,
    context: MessageContext,
  ): Promise<Met | SignIn> {
    const flow = {
      returnTo: `${PAGE_PATH}/${row.userCode}`,
      reason: { tag: 'agent', name: row.agentName },
    } as const
    const message = { token, tenantId: row.tenantId, demand, flow }
    const verdict = await browserSessions.ask('demand', message, context)
    return verdict.tag === 'met' ? { tag: 'met', row, session: verdict.session } : verdict
  }

  /** An open request and the person before it, as sure and as fresh as the decision needs. */
  async function meeting(
    { userCode, sessionToken, sessionId }: DecideRequest,
    demand: SessionDemand,
    context: MessageContext,
  ): Promise<Met | SignIn | UnknownRequest | RequestOver | { tag: 'back'; location: string }> {
    const row = await find(userCode, context)
    if (row === undefined) return UNKNOWN
    const back = { tag: 'back', location: `${PAGE_PATH}/${row.userCode}` } as const
    if (!isOpen(row)) {
      // The second of two clicks: the page tells what the first one did.
      const outcome = await outcomeFor(row, sessionToken, context)
      return outcome.tag === 'decided' ? back : outcome
    }
    const met = await demanded(row, sessionToken, demand, context)
    // Somebody else signed in since the page was shown: they are asked anew.
    return met.tag === 'met' && met.session.id !== sessionId ? back : met
  }

  /** Writes the decision down with its audit event; false when another one was faster. */
  async function decide(
    { row, session }: Met,
    scopes: readonly string[] | null,
    address: string,
    { requestId }: MessageContext,
  ): Promise<boolean> {
    const now = clock.now()
    const { tenantId, id } = row
    const decision = scopes === null ? 'denied' : 'approved'
    return database.tenant(tenantId, async (tx) => {
      // What the person may give was read from their session: it is over when that is.
      if (!(await holdOpenSession(tx, tenantId, session.id))) return false
      if (!(await decideDelegationRequest(tx, row, decision, session.sub, now))) return false
      if (scopes !== null) {
        await insertDelegation(tx, {
          tenantId,
          id,
          agentId: row.agentId,
          agentName: row.agentName,
          subject: session.sub,
          organizationId: session.organizationId,
          scopes,
          audience: row.audience,
          level: session.level,
          amr: session.amr,
          authTime: session.authTime,
          createdAt: now,
          // Its life begins when the agent fetches its token, which it has to do in time.
          expiresAt: row.expiresAt,
        })
      }
      appendAudit(tx, [
        {
          ...byPerson(session, address),
          id: random.uuid(),
          tenantId,
          type: `admin.delegation.${decision}`,
          occurredAt: now,
          delegationId: scopes === null ? null : id,
          resource: { type: 'delegation_request', id },
          outcome: scopes === null ? 'denied' : 'success',
          requestId: requestId ?? null,
          data: {
            agent_id: row.agentId,
            audience: row.audience,
            scope: (scopes ?? row.scopes).join(' '),
          },
        },
      ])
      return true
    })
  }

  async function question({ row, session }: Met, { signal }: MessageContext): Promise<Asked> {
    const { tenantId, agentId } = row
    const held = heldScopes(row.scopes, session.role)
    const of = { tenantId, agentId, subject: session.sub }
    return {
      tag: 'asked',
      tenant: faceOfTenant(row),
      email: session.email,
      sessionId: session.id,
      userCode: row.userCode,
      agentName: row.agentName,
      agentId,
      keyFingerprint: row.keyFingerprint,
      address: row.address,
      askedAt: row.createdAt,
      audience: row.audience,
      audienceName: row.audienceName,
      scopes: row.scopes.map((name) => ({ name, held: held.includes(name) })),
      lifetimeSecs: settings.delegation_ttl_secs,
      agentSince: row.agentSince,
      lastDelegatedAt: await database.tenant(tenantId, (tx) => lastDelegated(tx, of), { signal }),
    }
  }

  return {
    async show({ userCode, sessionToken }: ShowRequest, context: MessageContext): Reply<'show'> {
      const row = await find(userCode, context)
      if (row === undefined) return UNKNOWN
      if (!isOpen(row)) return outcomeFor(row, sessionToken, context)
      const met = await demanded(row, sessionToken, present, context)
      return met.tag === 'met' ? question(met, context) : met
    },

    async approve(message: DecideRequest, context: MessageContext): Reply<'approve'> {
      const met = await meeting(message, present, context)
      if (met.tag !== 'met') return met
      const { row, session } = met
      const scopes = heldScopes(row.scopes, session.role)
      if (scopes.length === 0) return { tag: 'nothing_held', asked: await question(met, context) }
      if (await decide(met, scopes, message.address, context)) metrics.took('approved')
      return { tag: 'back', location: `${PAGE_PATH}/${row.userCode}` }
    },

    async deny(message: DecideRequest, context: MessageContext): Reply<'deny'> {
      const met = await meeting(message, { level: 1 }, context)
      if (met.tag !== 'met') return met
      if (await decide(met, null, message.address, context)) metrics.took('denied')
      return { tag: 'back', location: `${PAGE_PATH}/${met.row.userCode}` }
    },
  }
}

const faceOfTenant = ({ tenantId, tenantName, tenantSettings }: ShownRequest) =>
  brandingOf(tenantId, tenantName, tenantSettings)
