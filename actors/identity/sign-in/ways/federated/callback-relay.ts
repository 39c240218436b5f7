/**
 * Relay of callbacks: `[oauth_proxy]`. Providers accept registered redirect URIs only, and the address of a preview deployment
 * is not registered. The preview sends the redirect URI of a relay, and a state that names its own origin. The relay passes
 * the callback on to that origin if the state has the signature of the shared secret and the origin is on its list.
 *
 * The state is `random.origin.expiry.signature`: base64url, the expiry in Unix seconds, HMAC-SHA-256 over the rest.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../../../../runtime/kernel/clock.js'
import type { OauthProxySettings } from './settings.js'

/** The redirect URI of a provider at an issuer. */
export const callbackOf = (issuer: string, provider: string): string =>
  `${issuer}/auth/sso/callback/${provider}`

const DOMAIN = 'svc-oauth-relay-v1'
const STATE = /^([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{1,400})\.([0-9]{1,12})\.([A-Za-z0-9_-]{43})$/
const PROVIDER = /^[A-Za-z0-9_-]{1,64}$/

/** True for a state of this shape. Its signature is not checked. */
export const isRelayState = (state: string): boolean => STATE.test(state)

export interface CallbackRelay {
  /** The issuer whose redirect URIs are sent to the deployment's providers. Null: this deployment's own. */
  readonly issuer: string | null
  /** A state that leads the callback from the relay to this deployment. */
  stateOf(random: string, lifetimeSecs: number): string
  /**
   * Where the callback of another deployment is passed on. Null: it is this deployment's own, or nothing permits it.
   * @param query the parameters of the callback, as received.
   */
  targetOf(provider: string, query: URLSearchParams): string | null
}

/** Undefined unless `oauth_proxy.enabled`, which production refuses. */
export function callbackRelay(
  settings: OauthProxySettings | undefined,
  issuer: string,
  clock: Clock,
): CallbackRelay | undefined {
  if (settings === undefined || !settings.enabled || settings.secret === undefined) return undefined
  const { secret, relay_url: relayUrl } = settings
  const own = new URL(issuer).origin
  const targets = new Set(settings.target_origins)
  const signed = (text: string) =>
    createHmac('sha256', secret).update(`${DOMAIN}\n${text}`).digest('base64url')

  return {
    issuer: relayUrl === undefined || relayUrl === issuer ? null : relayUrl,
    stateOf(random, lifetimeSecs) {
      const origin = Buffer.from(own, 'utf8').toString('base64url')
      const text = `${random}.${origin}.${clock.nowSecs() + lifetimeSecs}`
      return `${text}.${signed(text)}`
    },
    targetOf(provider, query) {
      const states = query.getAll('state')
      const [, random, name, expiry, signature] = STATE.exec(states[0] ?? '') ?? []
      if (states.length !== 1 || name === undefined || !PROVIDER.test(provider)) return null
      const expected = Buffer.from(signed(`${random}.${name}.${expiry}`))
      if (!timingSafeEqual(expected, Buffer.from(signature!))) return null
      if (Number(expiry) <= clock.nowSecs()) return null
      const origin = Buffer.from(name, 'base64url').toString('utf8')
      if (origin === own || !targets.has(origin)) return null
      return `${callbackOf(origin, provider)}?${query.toString()}`
    },
  }
}
