/** Error values of the token endpoint (RFC 6749 section 5.2). See docs/concepts/tokens.md. */
import { isDeletedClientError } from '../../../storage/oauth/applications.js'
import { isUuid } from '../../domain/ids.js'
import type { OAuthReason, RefusedRequester } from '../../domain/oauth-reasons.js'
import type {
  ClientAuthentication,
  ClientAuthenticationRead,
} from './clients/client-authentication.js'
import type { Client, WhyRefused } from './clients/clients.js'
import { type OAuthForm, readForm } from './form.js'
import type { FormFields, OAuthError, OAuthRefused } from './protocol.js'

/** @param reason the check that failed: a word of `OAUTH_ERRORS` for this error. */
export function refuse(error: OAuthError, description: string, reason: OAuthReason): OAuthRefused {
  return { tag: 'oauth_refused', error, description, reason }
}

/** The form, or a refusal that shows the name of a repeated parameter if it is a plain word. */
export function formOf(fields: FormFields): OAuthForm | OAuthRefused {
  const form = readForm(fields)
  if (!('repeated' in form)) return form
  const shown = /^[a-z_]{1,64}$/.test(form.repeated) ? form.repeated : 'a parameter'
  return refuse('invalid_request', `${shown} is repeated`, 'parameter_repeated')
}

/** The sender of a token request, as far as it is known at the time of a refusal. */
export type Requester = {
  readonly grantType: string | null
  /** The authenticated client. Null until authentication succeeds. */
  client: Client | null
}

/** A grant_type that is safe to log: the client chose it. */
const GRANT_TYPE = /^[\x21-\x7e]{1,100}$/

/** The sender of a refused request, for the log line of the request. It never contains a secret, code or token. */
export function refusedRequester(
  { grantType, client }: Requester,
  presented: ClientAuthenticationRead,
): RefusedRequester {
  const named = 'clientId' in presented ? presented.clientId : null
  const found = client && { clientId: client.row.id, tenantId: tenantOf(client) }
  return {
    // A public client proves nothing: anyone can send its id.
    client: client?.confidential === true ? found : null,
    presented: found ?? { clientId: idOr(named), tenantId: null },
    grantType: grantType !== null && GRANT_TYPE.test(grantType) ? grantType : null,
  }
}

/** The sender of a request whose client authentication failed. */
export function refusedClient(
  { clientId }: Pick<ClientAuthentication, 'clientId'>,
  { reason, tenantId }: WhyRefused,
): RefusedRequester {
  return {
    client: null,
    presented: { clientId: idOr(clientId), tenantId },
    grantType: null,
    reason,
  }
}

const idOr = (named: string | null) => (named !== null && isUuid(named) ? named : null)

export const whyOf = ({ presented, reason, isAnyones }: RefusedRequester) => ({
  presented,
  reason,
  isAnyones,
})

function tenantOf(client: Client): string {
  return client.kind === 'application' ? client.row.tenantId : client.row.homeTenantId
}

/** Refuses a valid token that lacks the scope of the operation. */
export function refuseScope(scope: string): OAuthRefused {
  return {
    ...refuse('insufficient_scope', `the token needs ${scope}`, 'scope_missing'),
    scopes: [scope],
  }
}

/**
 * Maps the foreign-key error to `invalid_client`: the client was deleted during its request.
 * @throws any other error unchanged.
 */
export function refuseGone(error: unknown): OAuthRefused {
  if (!isDeletedClientError(error)) throw error
  return refuse('invalid_client', 'client authentication failed', 'client_authentication_failed')
}
