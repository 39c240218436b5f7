/**
 * Completes a federated sign-in. In one transaction: finds, links or creates the account, adds the user to the tenant
 * and opens the session.
 */
import type { MessageContext } from '../../../../../runtime/kernel/actor.js'
import type { Email } from '../../../../domain/email.js'
import type { Random } from '../../../../../runtime/kernel/random.js'
import { insertAccount } from '../../../../../storage/identity/accounts.js'
import { appendEvents, type NewEvent } from '../../../../../storage/platform/outbox.js'
import { appendAudit, type NewAuditEvent } from '../../../../../storage/operations/audit.js'
import { appendJoined, insertActiveUser, joinByInvitation, newUserEvent } from '../../joining.js'
import { recordSignIn } from '../../../../../storage/identity/sign-ins.js'
import type { SignInFlowFound } from '../../../../../storage/identity/sign-in-flows.js'
import type { Transaction } from '../../../../../storage/platform/sql.js'
import { fillProfile } from '../../../../../storage/identity/profiles.js'
import {
  acceptInvitationRow,
  findIdentity,
  findLinkCandidate,
  findReturning,
  type IdentityKey,
  insertIdentity,
  joinOrganization,
  lockIdentity,
  type ReturningRow,
  useIdentity,
} from '../../../../../storage/identity/upstream-identities.js'
import {
  type DomainRoute,
  findDomainRoute,
} from '../../../../../storage/identity/verified-domains.js'
import { type PersonDeed, personEvent } from '../../../../platform/people/person-events.js'
import { proveMailbox } from '../../../../platform/people/mailbox-proof.js'
import { type PersonAudit, personAuditRecord } from '../../../../platform/people/person-events.js'
import { acrOf } from '../../../../domain/assurance.js'
import { socialOf } from '../../../../domain/tenants/branding.js'
import { challengeMethods } from '../../first-factor.js'
import { openSession } from '../../sessions/open-session.js'
import type { Visitor } from '../../protocol.js'
import type { FederatedLoginTools } from './needs.js'
import type { UpstreamClaims } from './client.js'
import type { FederatedLoginFault } from './protocol.js'
import type { Provider } from './providers.js'
import { domainOf, readEmail } from '../../../../platform/mail/public-domains.js'
import { admission, type Arrival, decide, evidenceOf, type Vouching, vouchingOf } from './rules.js'

/** Assumed age of an authentication when the provider sends no `auth_time`. */
const UNSTATED_AGE_MS = 3_600_000
const ATTEMPTS = 3

type FederatedLogin = {
  readonly provider: Provider
  readonly claims: UpstreamClaims
  readonly flow: SignInFlowFound
  readonly visitor: Visitor
  /** When the browser was sent to the provider, if re-authentication was required. */
  readonly freshSince: Date | null
}
type FederatedLoginResult =
  | { readonly tag: 'signed_in'; readonly token: string }
  | { readonly tag: 'refused'; readonly fault: FederatedLoginFault }

/** What the steps of a completion work with. */
type Completion = {
  readonly tx: Transaction
  readonly tools: FederatedLoginTools
  readonly login: FederatedLogin
  readonly context: MessageContext
  readonly now: Date
}

/** A concurrent request created the account of that address. The caller retries. */
class ConcurrentChange extends Error {
  override readonly name = 'ConcurrentChange'
}

export async function completeFederatedLogin(
  tools: FederatedLoginTools,
  login: FederatedLogin,
  context: MessageContext,
): Promise<FederatedLoginResult> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      // Accounts and identities belong to no tenant.
      return await tools.database.system(
        (tx) => completeIn({ tx, tools, login, context, now: tools.clock.now() }),
        context,
      )
    } catch (error) {
      if (!(error instanceof ConcurrentChange) || attempt === ATTEMPTS) throw error
    }
  }
}

async function completeIn(completion: Completion): Promise<FederatedLoginResult> {
  const { tx, tools, login, context, now } = completion
  const { provider, claims, flow, visitor } = login
  const { tenantId } = flow
  const key: IdentityKey = { provider: provider.id, issuer: claims.issuer, subject: claims.subject }
  await lockIdentity(tx, key)
  const address = await addressOf(tx, tools, provider, tenantId, claims)
  const { vouchedEmail, route } = address
  const mayJoin =
    provider.tenantId === null
      ? socialOf(flow.tenantSettings).provision
      : provider.provision && route !== undefined
  const decision = decide(await arrivalOf(completion, key, address, mayJoin))
  if (decision.tag === 'refuse') return { tag: 'refused', fault: decision.fault }
  const account = await accountOf(completion, decision, vouchedEmail !== null)

  const found = await findReturning(tx, tenantId, account, vouchedEmail)
  if (found === undefined) throw new ConcurrentChange()
  const verdict = admission(found, mayJoin)
  if (verdict !== 'admit' && verdict !== 'join') return { tag: 'refused', fault: verdict }
  // The account is now locked, so an identity that was removed concurrently is detected here.
  if (decision.tag === 'use' && (await useIdentity(tx, key, vouchedEmail, now)) !== account)
    throw new ConcurrentChange()
  let returning = found
  if (!found.emailVerified && found.addressProved) {
    const where = { tenantId, sub: found.sub, address: visitor.address }
    const how = 'provider'
    const proof = { accountId: account, how, inOwnSession: false, provedBy: key } as const
    await proveMailbox(tx, tools, { ...proof, ...where }, now, context)
    returning = (await findReturning(tx, tenantId, account, vouchedEmail)) ?? found
  }
  if (decision.tag !== 'use') {
    const id = tools.random.uuid()
    const identity = { ...key, id, accountId: account, email: vouchedEmail, createdAt: now }
    const isNew = await insertIdentity(tx, { ...identity, tenantId: provider.tenantId })
    if (!isNew) throw new ConcurrentChange()
  }
  const linked = decision.tag === 'link' ? key : null
  return signInAdmitted(completion, { account, returning, address, linked })
}

async function arrivalOf(
  { tx, tools: { linking }, login: { provider } }: Completion,
  key: IdentityKey,
  { email, vouches, route }: ClaimedAddress,
  mayCreate: boolean,
): Promise<Arrival> {
  const linked = await findIdentity(tx, key)
  const candidate =
    linked === undefined && email !== null ? await findLinkCandidate(tx, email, key) : undefined
  const isOfTenant = provider.tenantId !== null
  const mayLink = isOfTenant ? route !== undefined : linking
  const isForeign = isOfTenant && route === undefined
  return { linked, candidate, email, vouches, mayLink, mayCreate, isForeign }
}

type Admitted = {
  readonly account: string
  readonly returning: ReturningRow
  readonly address: ClaimedAddress
  /** The identity, if the sign-in linked it by its address. */
  readonly linked: IdentityKey | null
}

/** Makes the account a user of the tenant if needed, and opens the session. */
async function signInAdmitted(
  completion: Completion,
  { account, returning, address, linked }: Admitted,
): Promise<FederatedLoginResult> {
  const { tx, login, now } = completion
  const { random } = completion.tools
  const { provider, claims, flow, visitor } = login
  const { requestId } = completion.context
  const { tenantId } = flow
  const { tenantUserId, sub } = returning
  const user =
    tenantUserId === null || sub === null
      ? await provision(completion, account, address.email)
      : { id: tenantUserId, sub, events: [] }
  const ofTenant = provider.tenantId !== null
  const owner = { tenantId, accountId: account, ofTenant }
  const filled = await fillProfile(tx, owner, claims.profile, now)
  const { activated } = await recordSignIn(tx, tenantId, user.id, now)
  const accepted =
    returning.status === 'invited' && (await acceptInvitationRow(tx, tenantId, user.id, now))
  const session = await open(completion, account, returning.hasFactor)

  const base = { tenantId, sub: user.sub, sessionId: session.id, requestId }
  const event = (one: PersonDeed) => personEvent(random, { ...base, ...one }, now)
  const events: NewEvent[] = [...user.events]
  if (activated || accepted) events.push(event({ type: 'tenant_user.activated' }))
  const joining = { tenantId, accountId: account, sub: user.sub, requestId }
  await joinByInvitation(tx, random, joining, now)
  if (address.route?.autoJoin === true) {
    const member = await joinOrganization(tx, address.route.organizationId, account, now)
    if (member !== undefined) await appendJoined(tx, random, member, joining, now)
  }
  const from = { provider: provider.id, issuer: claims.issuer }
  events.push(event({ type: 'sso.login.success', fields: from }))
  if (session.pending) {
    const methods = await challengeMethods(tx, account)
    events.push(event({ type: 'auth.mfa.challenge', fields: { methods } }))
  } else events.push(event({ type: 'auth.login.success', fields: session.reached }))
  appendEvents(tx, events)
  const done = { tenantId, sub: user.sub, address: visitor.address, requestId }
  if (linked !== null) appendAudit(tx, [linkedRecord(random, done, linked, 'address', now)])
  if (filled.length > 0) {
    const data = { changed: filled.join(' '), provider: provider.id }
    const type = 'account.profile.updated'
    appendAudit(tx, [personAuditRecord(random, { ...done, type, data }, now)])
  }
  return { tag: 'signed_in', token: session.token }
}

/** Adds the account to the users of the tenant. */
async function provision(
  { tx, tools: { random }, login: { provider, flow }, context: { requestId }, now }: Completion,
  accountId: string,
  email: Email | null,
): Promise<{ readonly id: string; readonly sub: string; readonly events: readonly NewEvent[] }> {
  const { tenantId } = flow
  const names = await insertActiveUser(tx, random, { tenantId, accountId, roles: [] }, now)
  const fields = { provider: provider.id, ...(email === null ? {} : { email }) }
  const about = { ...names, tenantId, requestId }
  return { ...names, events: [newUserEvent(random, about, 'sso.user.provisioned', fields, now)] }
}

/** Opens the session at the level that the provider states. */
async function open({ tx, tools, login, now }: Completion, accountId: string, hasFactor: boolean) {
  const { provider, claims, flow, visitor, freshSince } = login
  const { tenantId, tenantSettings } = flow
  const { level, amr } = evidenceOf(claims.acr, claims.amr, provider.trustedAcrValues)
  const pending = hasFactor && level < 2
  const authTime = authTimeOf(claims.authTime, freshSince, now)
  // The tenant decides whom its provider signs in, so the session proves nothing outside of this tenant.
  const confined = provider.tenantId !== null
  const { subject: upstreamSubject, sid: upstreamSid } = claims
  const from = { provider: provider.id, upstreamSubject, upstreamSid }
  const elsewhere = { ...from, level, authTime, confined }
  const person = { tenantId, tenantSettings, accountId, pending, amr, elsewhere }
  const newSession = { ...person, leavesOtherTenants: true }
  const session = await openSession(tx, tools, newSession, visitor, now)
  return { ...session, pending, reached: { amr, acr: acrOf(level) } }
}

/** Audit record of a new linked identity: linked by the user, or automatically by a vouched address. */
export function linkedRecord(
  random: Random,
  done: Omit<PersonAudit, 'type' | 'data'>,
  { provider, issuer }: IdentityKey,
  by: 'person' | 'address',
  now: Date,
): NewAuditEvent {
  const data = { provider, issuer, by }
  return personAuditRecord(random, { ...done, type: 'account.identity.linked', data }, now)
}

/** The account that a decision refers to. A new one has no password. */
async function accountOf(
  { tx, tools, login, now }: Completion,
  decision: Exclude<ReturnType<typeof decide>, { tag: 'refuse' }>,
  emailVerified: boolean,
): Promise<string> {
  if (decision.tag !== 'create') return decision.accountId
  const id = tools.random.uuid()
  const account = { id, email: decision.email, emailVerified, displayName: login.claims.name }
  const isNew = await insertAccount(tx, { ...account, passwordHash: null, createdAt: now })
  if (!isNew) throw new ConcurrentChange()
  return id
}

type ClaimedAddress = {
  readonly email: Email | null
  readonly vouchedEmail: Email | null
  readonly vouches: Vouching
  /** The domain of the address, if it is verified and routed to this provider. */
  readonly route: DomainRoute | undefined
}

/**
 * The address in the claims, and whether the provider vouches for it. An address it does not vouch for is not stored:
 * the user of the provider can enter any mailbox there.
 */
export async function addressOf(
  tx: Transaction,
  tools: FederatedLoginTools,
  provider: Provider,
  tenantId: string,
  claims: UpstreamClaims,
): Promise<ClaimedAddress> {
  const email = readEmail(claims.email) ?? null
  const route = await routeOf(tx, tools, provider, tenantId, email)
  const ofDeployment = provider.tenantId === null
  const vouches = vouchingOf(claims.emailVerified, {
    ofDeployment,
    ownsDomain: route !== undefined,
  })
  return { email, vouchedEmail: vouches === 'none' ? null : email, vouches, route }
}

/** The domain of the address, if it is verified and routed to this provider. */
async function routeOf(
  tx: Transaction,
  { verifiedDomains }: FederatedLoginTools,
  provider: Provider,
  tenantId: string,
  email: Email | null,
): Promise<DomainRoute | undefined> {
  const domain = email === null ? undefined : domainOf(email)
  if (!verifiedDomains || provider.tenantId === null || domain === undefined) return undefined
  const route = await findDomainRoute(tx, tenantId, domain)
  return route?.providerId === provider.id ? route : undefined
}

/** When the user authenticated: as stated, limited to the possible range, or an hour ago if not stated. */
export function authTimeOf(stated: Date | null, freshSince: Date | null, now: Date): Date {
  const time = stated ?? new Date(now.getTime() - UNSTATED_AGE_MS)
  if (time > now) return now
  return freshSince !== null && time < freshSince ? freshSince : time
}
