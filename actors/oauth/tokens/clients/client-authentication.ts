/** Reads the client credentials of a request (RFC 6749 section 2.3, RFC 7523 section 2.2). */
import { asId } from '../../../domain/ids.js'
import type { OAuthReason } from '../../../domain/oauth-reasons.js'
import { flatString } from '../../../../runtime/kernel/text/flat-string.js'
import type { OAuthForm } from '../form.js'

const BASIC_CREDENTIALS = /^basic +([A-Za-z0-9+/]+={0,2})$/i
const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
/** draft-ietf-oauth-spiffe-client-auth. */
const JWT_SPIFFE = 'urn:ietf:params:oauth:client-assertion-type:jwt-spiffe'

export type SecretPlace = 'client_secret_basic' | 'client_secret_post'

export type ClientAuthentication =
  | {
      readonly method: 'secret'
      readonly clientId: string
      readonly secret: string
      /** Where the secret was, by the name of its method. */
      readonly place: SecretPlace
    }
  | {
      readonly method: 'assertion'
      readonly clientId: string | null
      readonly assertion: string
      /** `spiffe`: the request says that it is a JWT-SVID. */
      readonly presentedAs: 'spiffe' | null
    }
  | { readonly method: 'none'; readonly clientId: string }

export type ClientAuthenticationRead =
  | ClientAuthentication
  | {
      readonly method: 'refused'
      readonly error: 'invalid_request' | 'invalid_client'
      readonly description: string
      readonly reason: OAuthReason
    }

/** Reads the client's credentials. Two authentication methods in one request are an error (RFC 6749 section 2.3). */
export function readClientAuthentication(
  authorization: string | null,
  form: OAuthForm,
): ClientAuthenticationRead {
  const clientId = form.get('client_id')
  const secret = form.get('client_secret')
  const assertion = form.get('client_assertion')
  const assertionType = form.get('client_assertion_type')
  const usesAssertion = assertion !== null || assertionType !== null
  const ways = [authorization !== null, secret !== null, usesAssertion].filter(Boolean).length
  if (ways > 1)
    return refused(
      'invalid_request',
      'more than one method of client authentication',
      'several_authentication_methods',
    )

  if (authorization !== null) {
    const basic = readBasic(authorization)
    if (basic === null)
      return /^basic +/i.test(authorization)
        ? refused('invalid_client', 'the Basic credentials cannot be read', 'basic_malformed')
        : refused(
            'invalid_client',
            'the Authorization header is not Basic',
            'authorization_scheme_wrong',
          )
    if (clientId !== null && clientId !== basic.clientId)
      return refused(
        'invalid_request',
        'client_id differs from the one in the Authorization header',
        'client_ids_differ',
      )
    // Many libraries send public clients as Basic with an empty secret: treat that as no secret.
    return basic.secret === ''
      ? { method: 'none', clientId: basic.clientId }
      : { method: 'secret', place: 'client_secret_basic', ...basic }
  }
  if (usesAssertion) {
    const isSpiffe = assertionType === JWT_SPIFFE
    if ((assertionType !== JWT_BEARER && !isSpiffe) || assertion === null)
      return refused(
        'invalid_client',
        'client_assertion_type must be the jwt-bearer or jwt-spiffe URN',
        'assertion_type_unknown',
      )
    return { method: 'assertion', clientId, assertion, presentedAs: isSpiffe ? 'spiffe' : null }
  }
  if (clientId === null)
    return refused('invalid_client', 'no client authentication', 'client_authentication_missing')
  return secret === null
    ? { method: 'none', clientId }
    : { method: 'secret', place: 'client_secret_post', clientId, secret }
}

/** True if any part of the request identifies a client. */
export function identifiesClient(authorization: string | null, form: OAuthForm): boolean {
  return form.get('client_id') !== null || authenticatesClient(authorization, form)
}

/** True if the request has credentials of a client, besides its name. */
export function authenticatesClient(authorization: string | null, form: OAuthForm): boolean {
  const parameters = ['client_secret', 'client_assertion', 'client_assertion_type']
  return authorization !== null || parameters.some((name) => form.get(name) !== null)
}

/** The client form-encodes both halves before it joins them (RFC 6749 section 2.3.1). */
function readBasic(authorization: string): { clientId: string; secret: string } | null {
  const encoded = BASIC_CREDENTIALS.exec(authorization)?.[1]
  if (encoded === undefined) return null
  const pair = Buffer.from(encoded, 'base64').toString('utf8')
  const colon = pair.indexOf(':')
  if (colon < 1) return null
  const clientId = decodeFormValue(pair.slice(0, colon))
  const secret = decodeFormValue(pair.slice(colon + 1))
  return clientId === null || secret === null ? null : { clientId: asId(clientId), secret }
}

function decodeFormValue(text: string): string | null {
  try {
    // A slice would retain the whole pair: a cached client_id would keep the secret in memory.
    return flatString(decodeURIComponent(text.replaceAll('+', ' ')))
  } catch {
    return null
  }
}

function refused(
  error: 'invalid_request' | 'invalid_client',
  description: string,
  reason: OAuthReason,
): ClientAuthenticationRead {
  return { method: 'refused', error, description, reason }
}
