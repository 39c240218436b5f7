/** Refusals of the token endpoint, as values. RFC 6749 section 5.2; decisions.md 7.3, error map. */
import type { Logger } from '../../../runtime/kernel/log.js'
import { isDeletedClientError } from '../../../storage/oauth/applications.js'
import { isUuid } from '../../domain/ids.js'
import { type ClientPresentation, triesBasic } from './clients/client-authentication.js'
import type { Client } from './clients/clients.js'
import type { OAuthError, OAuthRefused, ProofRefused } from './protocol.js'

export function refuse(error: OAuthError, description: string, basicTried = false): OAuthRefused {
  return { tag: 'oauth_refused', error, description, basicTried }
}

/** Who a token request is from, as far as it is known when it is refused. */
export type Asker = {
  readonly grantType: string | null
  /** The client that authenticated; null before that. */
  client: Client | null
}

/** Refusals that belong to a flow that goes well: polls, and the first request with a nonce. */
const EXPECTED = new Set<string>(['authorization_pending', 'slow_down', 'use_dpop_nonce'])
const OURS = new Set<string>(['server_error', 'temporarily_unavailable'])
/** What a log line takes of a parameter that the sender chose. */
const GRANT_TYPE = /^[\x21-\x7e]{1,100}$/

/** Logs a refused token request: never a secret, a code or a token. */
export function logRefusal(
  log: Logger,
  { error, description }: OAuthRefused | ProofRefused,
  { grantType, client }: Asker,
  presented: ClientPresentation,
): void {
  const level = EXPECTED.has(error) ? 'debug' : OURS.has(error) ? 'warn' : 'info'
  const named = 'clientId' in presented ? presented.clientId : null
  const clientId = client?.row.id ?? (named !== null && isUuid(named) ? named : null)
  const tenantId = client === null ? null : tenantOf(client)
  const grant = grantType !== null && GRANT_TYPE.test(grantType) ? grantType : null
  log[level]({ error, description, clientId, tenantId, grant }, 'token request refused')
}

function tenantOf(client: Client): string {
  return client.kind === 'application' ? client.row.tenantId : client.row.homeTenantId
}

/** The refusal of a valid token without the scope that the operation needs. */
export function refuseScope(scope: string): OAuthRefused {
  return { ...refuse('insufficient_scope', `the token needs ${scope}`), scopes: [scope] }
}

/**
 * Of a request whose client was deleted while it was written down: there is no such client.
 * @throws the error, where it is another one.
 */
export function refuseGone(
  error: unknown,
  { authorization }: { readonly authorization: string | null },
): OAuthRefused {
  if (!isDeletedClientError(error)) throw error
  return refuse('invalid_client', 'client authentication failed', triesBasic(authorization))
}
