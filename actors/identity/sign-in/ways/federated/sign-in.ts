/**
 * The redirect to a provider and its callback. The `state` is random. The nonce, the PKCE verifier and the return path
 * stay here, sealed, for one browser and one use. Each provider has its own callback, and its response must name the
 * issuer if its metadata says so (RFC 9207, RFC 9700 section 4.4): this prevents mix-up attacks.
 */
import type { MessageContext } from '../../../../../runtime/kernel/actor.js'
import { lockAccountInSession } from '../../../../../storage/identity/accounts.js'
import { appendAudit } from '../../../../../storage/operations/audit.js'
import type { BrowserSessionRow } from '../../../../../storage/identity/browser-sessions.js'
import { appendEvents } from '../../../../../storage/platform/outbox.js'
import {
  findSignInFlow,
  findTenantBranding,
  type SignInFlowFound,
} from '../../../../../storage/identity/sign-in-flows.js'
import {
  insertIdentity,
  lockIdentity,
  useIdentity,
} from '../../../../../storage/identity/upstream-identities.js'
import { type UpstreamSignInRow } from '../../../../../storage/identity/upstream-sign-ins.js'
import { sha256 } from '../../../../domain/secret-hashes.js'
import { beginFlow, isOwnPath, nextStep, pathOf } from '../../flow/flows.js'
import { proveMailbox } from '../../../../platform/people/mailbox-proof.js'
import { catalogued, type EventFields } from '../../../../domain/events.js'
import { brandingOf, socialOf } from '../../../../domain/tenants/branding.js'
import { progressIn, readProgress } from '../../flow/progress.js'
import type { FlowUnknown, Visitor } from '../../protocol.js'
import { freshSignIn } from './identities.js'
import type { FederatedLoginHandler, FederatedLoginTools } from './needs.js'
import type { UpstreamClaims } from './client.js'
import type { FederatedLoginFault, StartFederatedLogin } from './protocol.js'
import type { Provider } from './providers.js'
import { addressOf, linkedRecord, completeFederatedLogin } from './complete.js'

import { ACCOUNT, backTo, failed, queryOf, redirect, startHostOf, takeState } from './state.js'
import { inTenant } from '../../../../platform/in-tenant.js'

/** Allowed clock skew between a provider and us. */
const SKEW_MS = 30_000

const brandingIn = ({ database }: FederatedLoginTools, tenantId: string, context: MessageContext) =>
  inTenant(database, tenantId, context, (tx) => findTenantBranding(tx, tenantId))

// Also the operation `confirmSsoStart`.
export const startSso: FederatedLoginHandler<'startSso'> = async (tools, message, context) => {
  const token = message.flow ?? (await startFlow(tools, message, context))
  if (token === null) return failed('unknown_tenant')
  const progress = await progressIn(tools, token, message.visitor.token, context)
  if ('tag' in progress) return failed('unknown_flow', beginAt(progress), progress.tenant)
  const { flow, session } = progress
  const { tenantId, tenantSettings } = flow
  const tenant = brandingOf(tenantId, flow.tenantName, tenantSettings)
  const place = { id: tenantId, deployment: socialOf(tenantSettings).enabled }
  const provider = await tools.providers.find(place, message.provider, context)
  if (provider === undefined) return failed('unknown_provider', backTo(token), tenant)
  const isAgain = session !== undefined && !session.pending && progress.step === 'login'
  const fresh = flow.maxAgeSecs !== null || flow.since !== null || isAgain
  const hint = message.loginHint ?? flow.loginHint
  // Any site can link here. The provider would then sign the browser in to an account chosen by that site (login
  // CSRF).
  const other = session !== undefined && session.tenantId !== tenantId ? session : null
  const isConfirmed = message.from === 'form' && message.leaves === (other?.id ?? null)
  if (!isConfirmed && (message.from !== 'page' || other !== null)) {
    const { id, name } = provider
    const leaves = other === null ? null : await sessionOfOtherTenant(tools, other, context)
    const shown = { flow: token, provider: { id, name }, tenant, loginHint: hint, leaves }
    return { tag: 'confirm', ...shown }
  }
  if (other !== null) {
    const { tenantId: otherTenantId, accountId, id: sessionId } = other
    await tools.browserSessions.revokeOne(
      { tenantId: otherTenantId, accountId, sessionId },
      context,
    )
  }
  return redirect(
    tools,
    {
      tenantId,
      tenant,
      provider,
      browserId: message.browserId,
      host: message.tenant.host ?? '',
      flow: token,
      linkingSessionId: null,
      ask: { loginHint: hint, fresh, strong: flow.level >= 2 },
    },
    context,
  )
}

export const linkOwnIdentity: FederatedLoginHandler<'linkOwnIdentity'> = async (
  tools,
  message,
  context,
) => {
  const { session, token } = message
  const { tenantId } = session
  const first = await freshSignIn(tools, { session, token }, context)
  if (first !== null) return first
  const branding = await brandingIn(tools, tenantId, context)
  if (branding === undefined) return failed('unknown_tenant')
  const tenant = brandingOf(tenantId, branding.tenantName, branding.tenantSettings)
  const place = { id: tenantId, deployment: socialOf(branding.tenantSettings).enabled }
  const provider = await tools.providers.find(place, message.provider, context)
  if (provider === undefined) return failed('unknown_provider', ACCOUNT, tenant)
  return redirect(
    tools,
    {
      tenantId,
      tenant,
      provider,
      browserId: message.browserId,
      host: message.host,
      flow: null,
      linkingSessionId: session.id,
      ask: { loginHint: null, fresh: false, strong: false },
    },
    context,
  )
}

export const finishSso: FederatedLoginHandler<'finishSso'> = async (tools, message, context) => {
  const relayed = tools.relay?.targetOf(message.provider, queryOf(message)) ?? null
  if (relayed !== null) return { tag: 'elsewhere', location: relayed }
  const taken = await takeState(tools, message, context)
  if (taken === undefined) {
    const location = await startHostOf(tools, message, context)
    if (location !== null) return { tag: 'elsewhere', location }
    tools.metrics.count('unknown', 'unknown_state')
    return failed('unknown_state')
  }
  const { row, request, flow: flowToken } = taken
  const { tenantId } = row
  const place = await placeOf(tools, row, flowToken, context)
  if (place === undefined) return failed('unknown_flow')
  const { tenant, settings } = place
  const back = flowToken === null ? ACCOUNT : backTo(flowToken)
  const enabled = { id: tenantId, deployment: socialOf(settings).enabled }
  const provider = await tools.providers.find(enabled, row.provider, context)
  const kind = provider?.tenantId === null ? 'deployment' : 'tenant'
  const refuse = async (fault: FederatedLoginFault, detail: string = fault) => {
    tools.metrics.count(kind, fault)
    context.log.info({ provider: row.provider, fault, detail }, 'federated sign-in failed')
    const said = { reason: fault, detail, ip: message.visitor.address }
    await recordFailure(tools, row, said, context)
    return failed(fault, back, tenant)
  }
  if (provider === undefined) return refuse('unknown_provider')
  const startMs = tools.clock.monotonicMs()
  const answer = await tools.client.finish(provider, request, queryOf(message))
  tools.metrics.took((tools.clock.monotonicMs() - startMs) / 1000)
  if (answer.tag === 'fault') return refuse(answer.fault, answer.detail)
  const { claims } = answer
  if (row.fresh && !isFresh(claims, row.createdAt)) return refuse('not_fresh')

  if (flowToken === null) {
    const fault = await linkIn(tools, row, { provider, claims }, message.visitor, context)
    if (fault !== undefined) return refuse(fault)
    tools.metrics.count(kind, 'linked')
    return { tag: 'linked', location: ACCOUNT, tenant }
  }
  const freshSince = row.fresh ? row.createdAt : null
  const login = { provider, claims, flow: place.flow!, visitor: message.visitor, freshSince }
  const result = await completeFederatedLogin(tools, login, context)
  if (result.tag === 'refused') return refuse(result.fault)
  tools.metrics.count(kind, 'signed_in')
  const { token } = result
  const progress = await readProgress(tools, flowToken, token, context)
  const step = progress?.step ?? nextStep(place.flow!, undefined, 1, tools.clock.now())
  const location = pathOf(step, flowToken, place.flow!.returnTo)
  return { tag: 'signed_in', token, location, tenant }
}

async function sessionOfOtherTenant(
  tools: FederatedLoginTools,
  { id: sessionId, tenantId, email }: BrowserSessionRow,
  context: MessageContext,
) {
  const branding = await brandingIn(tools, tenantId, context)
  if (branding === undefined) throw new Error('the tenant of an open session was not found')
  const { name: tenantName } = brandingOf(tenantId, branding.tenantName, branding.tenantSettings)
  return { sessionId, tenantName, email }
}

/** Starts a new flow for a browser that arrives directly, for example by `authorize_url`. */
async function startFlow(
  tools: FederatedLoginTools,
  { tenant: selector, returnTo, loginHint }: StartFederatedLogin,
  context: MessageContext,
): Promise<string | null> {
  const resolved = await tools.tenants.resolve(selector, context)
  if (resolved.tag !== 'resolved' || resolved.tenant.status !== 'active') return null
  const { id: tenantId } = resolved.tenant
  const path = returnTo !== null && isOwnPath(returnTo) ? returnTo : ACCOUNT
  const hint = loginHint ?? undefined
  const flow = { returnTo: path, reason: { tag: 'account' }, loginHint: hint } as const
  const demand = { level: tools.alwaysTwo ? 2 : 1 } as const
  return inTenant(tools.database, tenantId, context, (tx) =>
    beginFlow(tx, { tenantId, demand, flow }, tools.random, tools.clock.now()),
  )
}

async function placeOf(
  tools: FederatedLoginTools,
  { tenantId }: UpstreamSignInRow,
  flowToken: string | null,
  context: MessageContext,
) {
  const placeIn = (
    found: Pick<SignInFlowFound, 'tenantName' | 'tenantSettings'>,
    flow: SignInFlowFound | null,
  ) => ({
    tenant: brandingOf(tenantId, found.tenantName, found.tenantSettings),
    settings: found.tenantSettings,
    flow,
  })
  if (flowToken === null) {
    const branding = await brandingIn(tools, tenantId, context)
    return branding === undefined ? undefined : placeIn(branding, null)
  }
  const key = sha256(flowToken)
  const flow = await tools.database.system(
    (tx) => findSignInFlow(tx, key, tools.clock.now()),
    context,
  )
  return flow === undefined ? undefined : placeIn(flow, flow)
}

/** Links the identity, if the session that began the link is still open in this browser. Returns undefined on success. */
async function linkIn(
  tools: FederatedLoginTools,
  row: UpstreamSignInRow,
  { provider, claims }: { readonly provider: Provider; readonly claims: UpstreamClaims },
  { token, address }: Visitor,
  context: MessageContext,
): Promise<FederatedLoginFault | undefined> {
  const read = await tools.browserSessions.read({ token }, context)
  if (read.tag !== 'open' || read.session.id !== row.linkingSessionId) return 'session_gone'
  const { accountId, sub, tenantId } = read.session
  const key = { provider: provider.id, issuer: claims.issuer, subject: claims.subject }
  const now = tools.clock.now()
  return tools.database.system(async (tx) => {
    await lockIdentity(tx, key)
    if (!(await lockAccountInSession(tx, read.session))) return 'session_gone'
    const { vouchedEmail: email } = await addressOf(tx, tools, provider, tenantId, claims)
    const owner = await useIdentity(tx, key, email, now)
    if (owner !== undefined && owner !== accountId) return 'identity_taken'
    if (email?.toLowerCase() === read.session.email.toLowerCase()) {
      const where = { tenantId, sub, address }
      const proof = { accountId, how: 'provider', inOwnSession: true, ...where } as const
      await proveMailbox(tx, tools, proof, now, context)
    }
    if (owner !== undefined) return undefined
    const identity = { ...key, id: tools.random.uuid(), accountId, email, createdAt: now }
    const isNew = await insertIdentity(tx, { ...identity, tenantId: provider.tenantId })
    if (!isNew) return 'identity_taken'
    const done = { tenantId, sub, address, requestId: context.requestId }
    appendAudit(tx, [linkedRecord(tools.random, done, key, 'person', now)])
    return undefined
  }, context)
}

async function recordFailure(
  tools: FederatedLoginTools,
  { tenantId, provider }: UpstreamSignInRow,
  said: Omit<EventFields<'sso.login.failed'>, 'provider'>,
  context: MessageContext,
): Promise<void> {
  const now = tools.clock.now()
  const subject = {
    actor: { type: 'anonymous', id: 'unknown' },
    resource: { type: 'sso_provider', id: provider },
    requestId: context.requestId,
  }
  const failed = catalogued('sso.login.failed', subject, { provider, ...said })
  const event = { id: tools.random.uuid(), tenantId, occurredAt: now, ...failed }
  await inTenant(tools.database, tenantId, context, (tx) => appendEvents(tx, [event]))
}

/** True if the provider confirms an authentication after the browser was sent there. */
function isFresh({ authTime }: UpstreamClaims, since: Date): boolean {
  return authTime !== null && authTime.getTime() >= since.getTime() - SKEW_MS
}

const beginAt = ({ tenant }: FlowUnknown) =>
  tenant === null ? null : `/auth/login?tenant_id=${tenant.id}`
