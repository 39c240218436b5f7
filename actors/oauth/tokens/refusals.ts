/** Error values of the token endpoint (RFC 6749 section 5.2). See docs/concepts/tokens.md. */
import type { Logger } from '../../../runtime/kernel/log.js'
import { isDeletedClientError } from '../../../storage/oauth/applications.js'
import { isUuid } from '../../domain/ids.js'
import { type ClientAuthenticationRead, triesBasic } from './clients/client-authentication.js'
import type { Client } from './clients/clients.js'
import type { OAuthError, OAuthRefused, ProofRefused } from './protocol.js'

export function refuse(error: OAuthError, description: string, basicTried = false): OAuthRefused {
  return { tag: 'oauth_refused', error, description, basicTried }
}

/** The sender of a token request, as far as it is known at the time of a refusal. */
export type Requester = {
  readonly grantType: string | null
  /** The authenticated client. Null until authentication succeeds. */
  client: Client | null
}

/** Errors that are part of a normal flow: polls, and the first request without a nonce. */
const EXPECTED = new Set<string>(['authorization_pending', 'slow_down', 'use_dpop_nonce'])
const OURS = new Set<string>(['server_error', 'temporarily_unavailable'])
/** A grant_type that is safe to log: the client chose it. */
const GRANT_TYPE = /^[\x21-\x7e]{1,100}$/

/** Logs a refused token request. The line never contains a secret, code or token. */
export function logRefusal(
  log: Logger,
  { error, description }: OAuthRefused | ProofRefused,
  { grantType, client }: Requester,
  presented: ClientAuthenticationRead,
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

/** Refuses a valid token that lacks the scope of the operation. */
export function refuseScope(scope: string): OAuthRefused {
  return { ...refuse('insufficient_scope', `the token needs ${scope}`), scopes: [scope] }
}

/**
 * Maps the foreign-key error to `invalid_client`: the client was deleted during its request.
 * @throws any other error unchanged.
 */
export function refuseGone(
  error: unknown,
  { authorization }: { readonly authorization: string | null },
): OAuthRefused {
  if (!isDeletedClientError(error)) throw error
  return refuse('invalid_client', 'client authentication failed', triesBasic(authorization))
}
