/**
 * The redirect to a provider and its callback. The `state` is random. The nonce, the PKCE verifier and the return path
 * stay here, sealed, for one browser and one use. Each provider has its own callback, and its response must name the
 * issuer if its metadata says so (RFC 9207, RFC 9700 section 4.4): this prevents mix-up attacks.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { lockAccountInSession } from '../../../storage/identity/accounts.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import type { BrowserSessionRow } from '../../../storage/identity/browser-sessions.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { lookedUp } from '../../../storage/identity/email-keys.js'
import {
  findSignInFlow,
  findTenantBranding,
  type SignInFlowFound,
} from '../../../storage/identity/sign-in-flows.js'
import {
  insertIdentity,
  lockIdentity,
  useIdentity,
} from '../../../storage/identity/upstream-identities.js'
import {
  findUpstreamSignIn,
  insertUpstreamSignIn,
  takeUpstreamSignIn,
  upstreamSignInContext,
  type UpstreamSignInRow,
} from '../../../storage/identity/upstream-sign-ins.js'
import { beginFlow, isOwnPath, nextStep, pathOf, sha256 } from '../sessions/flows.js'
import { proveMailbox } from '../accounts/mailbox-proof.js'
import { eventData } from '../../domain/events.js'
import { brandingOf, socialOf } from '../../domain/tenants/branding.js'
import { progressIn, readProgress } from '../sign-in/flow.js'
import { addressAt, tenantHostOf } from '../sign-in/tenant-host.js'
import type { FlowUnknown, Visitor } from '../sign-in/protocol.js'
import type { PageTenant } from '../../domain/tenants/branding.js'
import type { FederatedLoginTools } from './needs.js'
import type { Ask, UpstreamRequest, UpstreamClaims } from './client.js'
import type {
  BackElsewhere,
  ConfirmStart,
  Linked,
  SignInFirst,
  FederatedLoginCallback,
  FederatedLoginFailed,
  FederatedLoginFault,
  FederatedLoginSignedIn,
  StartLink,
  StartFederatedLogin,
  ToUpstream,
} from './protocol.js'
import type { Provider } from './providers.js'
import { callbackOf, isRelayState } from './callback-relay.js'
import { addressOf, linkedRecord, completeFederatedLogin } from './complete.js'

const SECRET_BYTES = 32
/** Lifetime of a state: long enough to fetch a phone, short enough that a logged URL is useless. */
const STATE_LIFETIME_MS = 15 * 60_000
/** Allowed clock skew between a provider and us. */
const SKEW_MS = 30_000
const LINK_FRESH_SECS = 300
const ACCOUNT = '/auth/account'
const STATE = /^[A-Za-z0-9_-]{43}$/

type ProviderRedirect = {
  readonly tenantId: string
  readonly tenant: PageTenant
  readonly provider: Provider
  readonly browserId: string
  readonly host: string
  readonly flow: string | null
  readonly linkingSessionId: string | null
  readonly ask: Ask
}
/** The sealed part of a state. */
type SealedState = {
  readonly nonce: string
  readonly verifier: string
  readonly flow: string | null
  /** The tenant host where the browser started; null: the service's own address. */
  readonly host: string | null
}
type Return = {
  readonly row: UpstreamSignInRow
  readonly request: UpstreamRequest
  /** Null: the callback links an identity. */
  readonly flow: string | null
}

const queryOf = ({ parameters }: Pick<FederatedLoginCallback, 'parameters'>) =>
  new URLSearchParams(parameters.map((pair): [string, string] => [...pair]))

export function signInSteps(tools: FederatedLoginTools) {
  const { database, sealer, clock, random, tenants, browserSessions, providers, client } = tools
  const relays = tools.relay !== undefined && tools.relay.issuer !== null

  return {
    async start(
      message: StartFederatedLogin,
      context: MessageContext,
    ): Promise<ToUpstream | ConfirmStart | FederatedLoginFailed> {
      const token = message.flow ?? (await startFlow(message, context))
      if (token === null) return failed('unknown_tenant')
      const progress = await progressIn(tools, token, message.visitor.token, context)
      if ('tag' in progress) return failed('unknown_flow', beginAt(progress), progress.tenant)
      const { flow, session } = progress
      const { tenantId, tenantSettings } = flow
      const tenant = brandingOf(tenantId, flow.tenantName, tenantSettings)
      const place = { id: tenantId, deployment: socialOf(tenantSettings).enabled }
      const provider = await providers.find(place, message.provider, context)
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
        const leaves = other === null ? null : await sessionOfOtherTenant(other, context)
        const shown = { flow: token, provider: { id, name }, tenant, loginHint: hint, leaves }
        return { tag: 'confirm', ...shown }
      }
      if (other !== null) {
        const { tenantId: otherTenantId, accountId, id: sessionId } = other
        await browserSessions.revokeOne({ tenantId: otherTenantId, accountId, sessionId }, context)
      }
      return redirect(
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
    },

    async link(
      message: StartLink,
      context: MessageContext,
    ): Promise<ToUpstream | SignInFirst | FederatedLoginFailed> {
      const { session, token } = message
      const { tenantId } = session
      const demanded = await browserSessions.demand(sensitive(session, token), context)
      if (demanded.tag === 'sign_in') return demanded
      const branding = await database.tenant(
        tenantId,
        (tx) => findTenantBranding(tx, tenantId),
        context,
      )
      if (branding === undefined) return failed('unknown_tenant')
      const tenant = brandingOf(tenantId, branding.tenantName, branding.tenantSettings)
      const place = { id: tenantId, deployment: socialOf(branding.tenantSettings).enabled }
      const provider = await providers.find(place, message.provider, context)
      if (provider === undefined) return failed('unknown_provider', ACCOUNT, tenant)
      return redirect(
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
    },

    async callback(
      message: FederatedLoginCallback,
      context: MessageContext,
    ): Promise<FederatedLoginSignedIn | Linked | BackElsewhere | FederatedLoginFailed> {
      const relayed = tools.relay?.targetOf(message.provider, queryOf(message)) ?? null
      if (relayed !== null) return { tag: 'elsewhere', location: relayed }
      const taken = await takeState(message, context)
      if (taken === undefined) {
        const location = await startHostOf(message, context)
        if (location !== null) return { tag: 'elsewhere', location }
        tools.metrics.count('unknown', 'unknown_state')
        return failed('unknown_state')
      }
      const { row, request, flow: flowToken } = taken
      const { tenantId } = row
      const place = await placeOf(row, flowToken, context)
      if (place === undefined) return failed('unknown_flow')
      const { tenant, settings } = place
      const back = flowToken === null ? ACCOUNT : backTo(flowToken)
      const enabled = { id: tenantId, deployment: socialOf(settings).enabled }
      const provider = await providers.find(enabled, row.provider, context)
      const kind = provider?.tenantId === null ? 'deployment' : 'tenant'
      const refuse = async (fault: FederatedLoginFault, detail: string = fault) => {
        tools.metrics.count(kind, fault)
        context.log.info({ provider: row.provider, fault, detail }, 'federated sign-in failed')
        await recordFailure(row, fault, detail, message.visitor.address, context)
        return failed(fault, back, tenant)
      }
      if (provider === undefined) return refuse('unknown_provider')
      const startMs = clock.monotonicMs()
      const parameters = new URLSearchParams(
        message.parameters.map((pair): [string, string] => [...pair]),
      )
      const answer = await client.finish(provider, request, parameters)
      tools.metrics.took((clock.monotonicMs() - startMs) / 1000)
      if (answer.tag === 'fault') return refuse(answer.fault, answer.detail)
      const { claims } = answer
      if (row.fresh && !isFresh(claims, row.createdAt)) return refuse('not_fresh')

      if (flowToken === null) {
        const fault = await linkIn(row, provider, claims, message.visitor, context)
        if (fault !== null) return refuse(fault)
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
      const step = progress?.step ?? nextStep(place.flow!, undefined, 1, clock.now())
      const location = pathOf(step, flowToken, place.flow!.returnTo)
      return { tag: 'signed_in', token, location, tenant }
    },
  }

  async function sessionOfOtherTenant(
    { id: sessionId, tenantId, email }: BrowserSessionRow,
    context: MessageContext,
  ) {
    const branding = await database.tenant(
      tenantId,
      (tx) => findTenantBranding(tx, tenantId),
      context,
    )
    if (branding === undefined) throw new Error('the tenant of an open session was not found')
    const { name: tenantName } = brandingOf(tenantId, branding.tenantName, branding.tenantSettings)
    return { sessionId, tenantName, email }
  }

  /** Starts a new flow for a browser that arrives directly, for example by `authorize_url`. */
  async function startFlow(
    { tenant: selector, returnTo, loginHint }: StartFederatedLogin,
    context: MessageContext,
  ): Promise<string | null> {
    const resolved = await tenants.resolve(selector, context)
    if (resolved.tag !== 'resolved' || resolved.tenant.status !== 'active') return null
    const { id: tenantId } = resolved.tenant
    const path = returnTo !== null && isOwnPath(returnTo) ? returnTo : ACCOUNT
    const hint = loginHint ?? undefined
    const flow = { returnTo: path, reason: { tag: 'account' }, loginHint: hint } as const
    const demand = { level: tools.alwaysTwo ? 2 : 1 } as const
    return database.tenant(
      tenantId,
      (tx) => beginFlow(tx, { tenantId, demand, flow }, random, clock.now()),
      context,
    )
  }

  async function redirect(
    target: ProviderRedirect,
    context: MessageContext,
  ): Promise<ToUpstream | FederatedLoginFailed> {
    const { tenantId, tenant, provider, flow, ask } = target
    // The redirect URIs of a tenant's own providers are registered for this deployment.
    const relay = provider.tenantId === null && relays ? tools.relay : undefined
    const request: UpstreamRequest = {
      redirectUri: callbackOf(relay?.issuer ?? tools.issuer, provider.id),
      state:
        relay?.stateOf(random.token(SECRET_BYTES), STATE_LIFETIME_MS / 1000) ??
        random.token(SECRET_BYTES),
      nonce: random.token(SECRET_BYTES),
      verifier: random.token(SECRET_BYTES),
    }
    const authorization = await client.authorizationUrl(provider, request, ask)
    if (authorization.tag === 'fault') {
      const { fault, detail } = authorization
      context.log.warn({ provider: provider.id, fault, detail }, 'upstream provider unusable')
      tools.metrics.count(provider.tenantId === null ? 'deployment' : 'tenant', fault)
      return failed(fault, flow === null ? ACCOUNT : backTo(flow), tenant)
    }
    const now = clock.now()
    const stateSha256 = sha256(request.state)
    const { nonce, verifier } = request
    const host = await tenantHostOf(tenants, tenantId, target.host, context)
    const plaintext = JSON.stringify({ nonce, verifier, flow, host } satisfies SealedState)
    const sealingContext = upstreamSignInContext(stateSha256)
    const sealed = await sealer.seal(tenantId, sealingContext, Buffer.from(plaintext, 'utf8'))
    await database.tenant(
      tenantId,
      (tx) =>
        insertUpstreamSignIn(tx, {
          tenantId,
          stateSha256,
          browserSha256: sha256(target.browserId),
          provider: provider.id,
          linkingSessionId: target.linkingSessionId,
          sealed,
          fresh: ask.fresh,
          createdAt: now,
          expiresAt: new Date(now.getTime() + STATE_LIFETIME_MS),
        }),
      context,
    )
    return { tag: 'to_upstream', url: authorization.url, name: provider.name, tenant }
  }

  /** The state named in the response. Reading it uses it up. */
  async function takeState(
    { provider, parameters, browserId }: FederatedLoginCallback,
    context: MessageContext,
  ): Promise<Return | undefined> {
    const states = parameters.filter(([name]) => name === 'state').map(([, value]) => value)
    const [state] = states
    if (states.length !== 1 || state === undefined) return undefined
    const isRelayed = isRelayState(state)
    if (!STATE.test(state) && !isRelayed) return undefined
    const stateSha256 = sha256(state)
    const key = { stateSha256, browserSha256: sha256(browserId), provider }
    const row = await database.system((tx) => takeUpstreamSignIn(tx, key, clock.now()), context)
    if (row === undefined) return undefined
    const { nonce, verifier, flow } = await unsealed(row, stateSha256)
    const from = isRelayed ? (tools.relay?.issuer ?? tools.issuer) : tools.issuer
    const redirectUri = callbackOf(from, provider)
    return { row, flow, request: { redirectUri, state, nonce, verifier } }
  }

  /** The host where the browser of a state started, if it is another than the callback's. */
  async function startHostOf(
    { provider, parameters, host: here }: FederatedLoginCallback,
    context: MessageContext,
  ): Promise<string | null> {
    const query = queryOf({ parameters })
    const stateSha256 = sha256(query.get('state') ?? '')
    const key = { stateSha256, provider }
    const row = await database.system((tx) => findUpstreamSignIn(tx, key, clock.now()), context)
    if (row === undefined) return null
    const { host } = await unsealed(row, stateSha256)
    if (host === null || host === new URL(`http://${here}`).hostname) return null
    return `${callbackOf(addressAt(tools.issuer, host), provider)}?${query.toString()}`
  }

  async function unsealed(
    { tenantId, sealed }: Pick<UpstreamSignInRow, 'tenantId' | 'sealed'>,
    stateSha256: Uint8Array,
  ): Promise<SealedState> {
    const plaintext = await sealer.open(tenantId, upstreamSignInContext(stateSha256), sealed)
    // States written by an earlier version have no host.
    return {
      host: null,
      ...(JSON.parse(Buffer.from(plaintext).toString('utf8')) as Omit<SealedState, 'host'>),
    }
  }

  async function placeOf(
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
      const branding = await database.tenant(
        tenantId,
        (tx) => findTenantBranding(tx, tenantId),
        context,
      )
      return branding === undefined ? undefined : placeIn(branding, null)
    }
    const key = sha256(flowToken)
    const flow = await database.system((tx) => findSignInFlow(tx, key, clock.now()), context)
    return flow === undefined ? undefined : placeIn(flow, flow)
  }

  /** Links the identity, if the session that began the link is still open in this browser. Returns null on success. */
  async function linkIn(
    row: UpstreamSignInRow,
    provider: Provider,
    claims: UpstreamClaims,
    { token, address }: Visitor,
    context: MessageContext,
  ): Promise<FederatedLoginFault | null> {
    const read = await browserSessions.read({ token }, context)
    if (read.tag !== 'open' || read.session.id !== row.linkingSessionId) return 'session_gone'
    const { accountId, sub, tenantId } = read.session
    const key = { provider: provider.id, issuer: claims.issuer, subject: claims.subject }
    const now = clock.now()
    return database.system(async (tx) => {
      await lockIdentity(tx, key)
      if (!(await lockAccountInSession(tx, read.session))) return 'session_gone'
      const { vouchedEmail: email } = await addressOf(tx, tools, provider, tenantId, claims)
      const owner = await useIdentity(tx, key, email, now)
      if (owner !== undefined && owner !== accountId) return 'identity_taken'
      if (email !== null && sameMailbox(email, read.session.email)) {
        const where = { tenantId, sub, address }
        const proof = { accountId, how: 'provider', inOwnSession: true, ...where } as const
        await proveMailbox(tx, tools, proof, context, now)
      }
      if (owner !== undefined) return null
      const identity = { ...key, id: random.uuid(), accountId, email, createdAt: now }
      const isNew = await insertIdentity(tx, { ...identity, tenantId: provider.tenantId })
      if (!isNew) return 'identity_taken'
      const done = { tenantId, sub, address, requestId: context.requestId }
      appendAudit(tx, [linkedRecord(random, done, key, 'person', now)])
      return null
    }, context)
  }

  async function recordFailure(
    { tenantId, provider }: UpstreamSignInRow,
    reason: FederatedLoginFault,
    detail: string,
    ip: string,
    context: MessageContext,
  ): Promise<void> {
    const now = clock.now()
    const subject = {
      actor: { type: 'anonymous', id: 'unknown' },
      resource: { type: 'sso_provider', id: provider },
      requestId: context.requestId,
    }
    const data = eventData(subject, { provider, reason, detail, ip })
    const event = { id: random.uuid(), tenantId, type: 'sso.login.failed', occurredAt: now, data }
    await database.tenant(tenantId, (tx) => appendEvents(tx, [event]), context)
  }
}

/** The demand on the session for adding or removing a sign-in method. */
export function sensitive(
  { tenantId, sub, level }: { tenantId: string; sub: string; level: 1 | 2 | 3 },
  token: string,
) {
  return {
    token,
    tenantId,
    sub,
    demand: { level: level >= 2 ? 2 : 1, maxAgeSecs: LINK_FRESH_SECS },
    flow: { returnTo: ACCOUNT, reason: { tag: 'sensitive' } },
  } as const
}

/** True if the provider confirms an authentication after the browser was sent there. */
function isFresh({ authTime }: UpstreamClaims, since: Date): boolean {
  return authTime !== null && authTime.getTime() >= since.getTime() - SKEW_MS
}

const sameMailbox = (a: string, b: string) =>
  lookedUp(a).toLowerCase() === lookedUp(b).toLowerCase()

const beginAt = ({ tenant }: FlowUnknown) =>
  tenant === null ? null : `/auth/login?tenant_id=${tenant.id}`

const backTo = (flow: string) => `/auth/login?flow=${flow}`

function failed(
  fault: FederatedLoginFault,
  location: string | null = null,
  tenant: PageTenant | null = null,
): FederatedLoginFailed {
  return { tag: 'failed', fault, location, tenant }
}
