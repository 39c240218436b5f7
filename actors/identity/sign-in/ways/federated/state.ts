/**
 * The state of a redirect to a provider. It is random. The nonce, the PKCE verifier and the return path stay here, sealed,
 * for one browser and one use.
 */
import type { MessageContext } from '../../../../../runtime/kernel/actor.js'
import {
  findUpstreamSignIn,
  insertUpstreamSignIn,
  takeUpstreamSignIn,
  upstreamSignInContext,
  type UpstreamSignInRow,
} from '../../../../../storage/identity/upstream-sign-ins.js'
import { sha256 } from '../../../../domain/secret-hashes.js'
import { addressAt, tenantHostOf } from '../../tenant-host.js'
import type { PageTenant } from '../../../../domain/tenants/branding.js'
import type { FederatedLoginTools } from './needs.js'
import type { Ask, UpstreamRequest } from './client.js'
import type {
  FederatedLoginCallback,
  FederatedLoginFailed,
  FederatedLoginFault,
  ToUpstream,
} from './protocol.js'
import type { Provider } from './providers.js'
import { callbackOf, isRelayState } from './callback-relay.js'
import { inTenant } from '../../../../platform/in-tenant.js'

const SECRET_BYTES = 32
/** Lifetime of a state: long enough to fetch a phone, short enough that a logged URL is useless. */
const STATE_LIFETIME_MS = 15 * 60_000
export const ACCOUNT = '/auth/account'
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

export const queryOf = ({ parameters }: Pick<FederatedLoginCallback, 'parameters'>) =>
  new URLSearchParams(parameters.map((pair): [string, string] => [...pair]))

export async function redirect(
  tools: FederatedLoginTools,
  target: ProviderRedirect,
  context: MessageContext,
): Promise<ToUpstream | FederatedLoginFailed> {
  const { tenantId, tenant, provider, flow, ask } = target
  // The redirect URIs of a tenant's own providers are registered for this deployment.
  const relay = provider.tenantId === null && tools.relay?.issuer != null ? tools.relay : undefined
  const request: UpstreamRequest = {
    redirectUri: callbackOf(relay?.issuer ?? tools.issuer, provider.id),
    state:
      relay?.stateOf(tools.random.token(SECRET_BYTES), STATE_LIFETIME_MS / 1000) ??
      tools.random.token(SECRET_BYTES),
    nonce: tools.random.token(SECRET_BYTES),
    verifier: tools.random.token(SECRET_BYTES),
  }
  const authorization = await tools.client.authorizationUrl(provider, request, ask)
  if (authorization.tag === 'fault') {
    const { fault, detail } = authorization
    context.log.warn({ provider: provider.id, fault, detail }, 'upstream provider unusable')
    tools.metrics.count(provider.tenantId === null ? 'deployment' : 'tenant', fault)
    return failed(fault, flow === null ? ACCOUNT : backTo(flow), tenant)
  }
  const now = tools.clock.now()
  const stateSha256 = sha256(request.state)
  const { nonce, verifier } = request
  const host = await tenantHostOf(tools.tenants, tenantId, target.host, context)
  const plaintext = JSON.stringify({ nonce, verifier, flow, host } satisfies SealedState)
  const sealingContext = upstreamSignInContext(stateSha256)
  const sealed = await tools.sealer.seal(tenantId, sealingContext, Buffer.from(plaintext, 'utf8'))
  await inTenant(tools.database, tenantId, context, (tx) =>
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
  )
  return { tag: 'to_upstream', url: authorization.url, name: provider.name, tenant }
}

/** The state named in the response. Reading it uses it up. */
export async function takeState(
  tools: FederatedLoginTools,
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
  const row = await tools.database.system(
    (tx) => takeUpstreamSignIn(tx, key, tools.clock.now()),
    context,
  )
  if (row === undefined) return undefined
  const { nonce, verifier, flow } = await unsealed(tools, row, stateSha256)
  const from = isRelayed ? (tools.relay?.issuer ?? tools.issuer) : tools.issuer
  const redirectUri = callbackOf(from, provider)
  return { row, flow, request: { redirectUri, state, nonce, verifier } }
}

/** The host where the browser of a state started, if it is another than the callback's. */
export async function startHostOf(
  tools: FederatedLoginTools,
  { provider, parameters, host: here }: FederatedLoginCallback,
  context: MessageContext,
): Promise<string | null> {
  const query = queryOf({ parameters })
  const stateSha256 = sha256(query.get('state') ?? '')
  const key = { stateSha256, provider }
  const row = await tools.database.system(
    (tx) => findUpstreamSignIn(tx, key, tools.clock.now()),
    context,
  )
  if (row === undefined) return null
  const { host } = await unsealed(tools, row, stateSha256)
  if (host === null || host === new URL(`http://${here}`).hostname) return null
  return `${callbackOf(addressAt(tools.issuer, host), provider)}?${query.toString()}`
}

async function unsealed(
  tools: FederatedLoginTools,
  { tenantId, sealed }: Pick<UpstreamSignInRow, 'tenantId' | 'sealed'>,
  stateSha256: Uint8Array,
): Promise<SealedState> {
  const plaintext = await tools.sealer.open(tenantId, upstreamSignInContext(stateSha256), sealed)
  // States written by an earlier version have no host.
  return {
    host: null,
    ...(JSON.parse(Buffer.from(plaintext).toString('utf8')) as Omit<SealedState, 'host'>),
  }
}

export const backTo = (flow: string) => `/auth/login?flow=${flow}`

export function failed(
  fault: FederatedLoginFault,
  location: string | null = null,
  tenant: PageTenant | null = null,
): FederatedLoginFailed {
  return { tag: 'failed', fault, location, tenant }
}
