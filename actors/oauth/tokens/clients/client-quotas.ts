/**
 * Quotas of OAuth clients. They are taken after client authentication: the client_id of a request without valid
 * credentials is what its sender wrote, so it must not use up the quota of that client. The gateway bounds the
 * authentications of each address.
 */
import { createHash } from 'node:crypto'
import type { ActorRef, MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Quota, RateLimitsProtocol } from '../../../operations/rate-limits/protocol.js'
import { quotaAddress } from '../../../domain/quota-address.js'
import { readJws } from '../../../platform/jose/external-jws.js'
import type { OAuthForm } from '../form.js'
import type { ClientQuota, Metered, OAuthRefused, TokenRequest } from '../protocol.js'
import { refuse } from '../refusals.js'
import { readClientAuthentication } from './client-authentication.js'
import type { Client } from './clients.js'

/** A request whose quota is taken. */
type Counted<Found> = { readonly tag: 'counted'; readonly client: Found } & Metered

type Counting = {
  readonly request: Pick<TokenRequest, 'authorization' | 'address'>
  readonly form: OAuthForm
  /** Null counts failures only. */
  readonly quota: ClientQuota | null
}

/** @param throttle absent without rate limits. */
export function clientQuotas(throttle: ActorRef<RateLimitsProtocol> | undefined) {
  return {
    /**
     * Counts a request by its client, a refused authentication by the presented client_id and the network.
     * @param found the result of client authentication. Null for a request without client.
     * @returns the refusal if `found` is one, or if the quota is used up.
     */
    async count<Found extends Client | null>(
      found: Found | OAuthRefused,
      { request, form, quota }: Counting,
      context: MessageContext,
    ): Promise<Counted<Found> | OAuthRefused> {
      const outcome = isRefused(found) ? found : ({ tag: 'counted', client: found } as const)
      const network = quotaAddress(request.address)
      const counted = isRefused(found)
        ? failureQuota(found, presentedId(request.authorization, form), network)
        : clientQuota(found, quota, network)
      if (throttle === undefined || counted === null) return outcome
      const taken = await throttle.take({ quotas: [counted] }, context)
      if (taken.tag === 'unknown') throw new Error('a rate limit of clients must not fail closed')
      const { windows } = taken
      if (taken.tag === 'taken') return metered(outcome, windows)
      const { violated, retryAfterSecs } = taken
      const description = `the rate limit ${violated.join(', ')} is exceeded`
      const over = refuse('rate_limited', description, 'limit_exceeded')
      return { ...over, retryAfterSecs, violated, windows }
    },
  }
}

/** The outcome of a counted request, with the state of its quotas. */
export function metered<Outcome extends object>(
  outcome: Outcome,
  windows: Metered['windows'],
): Outcome & Metered {
  return windows === undefined ? outcome : { ...outcome, windows }
}

function isRefused<Found extends Client | null>(
  found: Found | OAuthRefused,
): found is OAuthRefused {
  return found !== null && 'tag' in found
}

function clientQuota(
  client: Client | null,
  quota: ClientQuota | null,
  network: string,
): Quota | null {
  if (quota === null) return null
  const policy = quota === 'device' ? 'device' : 'token'
  const key = keyOf(client, network)
  // Separate from the polls of the same client.
  return { policy, key: quota === 'ciba' ? `ciba ${key}` : key }
}

function failureQuota({ error }: OAuthRefused, presented: string, network: string): Quota | null {
  return error === 'invalid_client'
    ? { policy: 'token', key: `failed ${presented} ${network}` }
    : null
}

/** A client that proved its identity has one quota. A public client_id has one in each network. */
function keyOf(client: Client | null, network: string): string {
  if (client === null) return `none ${network}`
  return client.confidential ? `client ${client.row.id}` : `public ${client.row.id} ${network}`
}

/** A hash of the unverified client_id of a request, which can be long. An assertion without client_id contains it. */
function presentedId(authorization: string | null, form: OAuthForm): string {
  const read = readClientAuthentication(authorization, form)
  const named = 'clientId' in read ? read.clientId : form.get('client_id')
  const asserted = read.method === 'assertion' ? readJws(read.assertion)?.claims['sub'] : null
  const id = String(named ?? asserted ?? '')
  return createHash('sha256').update(id).digest('base64url')
}
