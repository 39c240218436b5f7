/** Authorization responses and their redirect locations (RFC 6749 section 4.1.2, RFC 9207). */
import type { AuthorizingClientRow } from '../../../../storage/oauth/applications.js'
import { brandingOf } from '../../../domain/tenants/branding.js'
import type { AuthorizationRequest } from './parameters.js'
import type { Answered, ReturnedError } from './protocol.js'

/** A request, and its client. */
type Answering = {
  readonly client: Pick<AuthorizingClientRow, 'tenantId' | 'tenantName' | 'tenantSettings' | 'name'>
  readonly request: Pick<
    AuthorizationRequest,
    'redirectUri' | 'state' | 'responseMode' | 'uiLocales'
  >
}

/** Appends parameters to the redirect URI and keeps its own query unchanged. */
export function withParameters(
  uri: string,
  parameters: Readonly<Record<string, string | null>>,
): string {
  const added = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) if (value !== null) added.set(name, value)
  const text = added.toString()
  if (text === '') return uri
  const question = uri.indexOf('?')
  if (question < 0) return `${uri}?${text}`
  const joined = question === uri.length - 1 || uri.endsWith('&')
  return joined ? uri + text : `${uri}&${text}`
}

/** Returns to the client with the parameters, in the response mode of the request. */
function answer(
  { client, request }: Answering,
  parameters: Readonly<Record<string, string | null>>,
): Answered {
  const { redirectUri, responseMode, uiLocales } = request
  if (responseMode !== 'form_post')
    return { tag: 'answered', location: withParameters(redirectUri, parameters) }
  const given = Object.entries(parameters).filter((one): one is [string, string] => one[1] !== null)
  return {
    tag: 'posted',
    action: redirectUri,
    fields: Object.fromEntries(given),
    tenant: brandingOf(client.tenantId, client.tenantName, client.tenantSettings),
    clientName: client.name,
    uiLocales,
    formTargets: [formTarget(redirectUri)],
  }
}

export function codeAnswer(of: Answering, issuer: string, code: string): Answered {
  return answer(of, { code, state: of.request.state, iss: issuer })
}

export function errorAnswer(
  of: Answering,
  issuer: string,
  error: ReturnedError,
  description: string,
): Answered {
  const { state } = of.request
  return answer(of, { error, error_description: description, state, iss: issuer })
}

/** The CSP `form-action` source for a form whose response redirects to this URI. */
export function formTarget(redirectUri: string): string {
  return isOfHost(redirectUri) ? new URL(redirectUri).origin : schemeOf(redirectUri)
}

/** The root of the application's host, where a user can start again. Null for a private scheme. */
export function startOf(redirectUri: string): string | null {
  return isOfHost(redirectUri) ? `${new URL(redirectUri).origin}/` : null
}

/** The recognisable part of the redirect URI: a host, or the scheme of an installed application. */
export function hostOf(redirectUri: string): string {
  return isOfHost(redirectUri) ? new URL(redirectUri).host : schemeOf(redirectUri).slice(0, -1)
}

/** False for a private scheme of an installed application. */
export function isOfHost(redirectUri: string): boolean {
  return ['https:', 'http:'].includes(schemeOf(redirectUri))
}

/** With its colon. The part after a private scheme belongs to the application and is not parsed. */
function schemeOf(redirectUri: string): string {
  return redirectUri.slice(0, redirectUri.indexOf(':') + 1).toLowerCase()
}
