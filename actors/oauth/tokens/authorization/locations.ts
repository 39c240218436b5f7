/** Redirect locations of authorization responses (RFC 6749 section 4.1.2, RFC 9207). */
import type { ReturnedError } from './protocol.js'

type Answer = {
  readonly redirectUri: string
  readonly state: string | null
  readonly issuer: string
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

export function codeLocation({ redirectUri, state, issuer }: Answer, code: string): string {
  return withParameters(redirectUri, { code, state, iss: issuer })
}

export function errorLocation(
  { redirectUri, state, issuer }: Answer,
  error: ReturnedError,
  description: string,
): string {
  const parameters = { error, error_description: description, state, iss: issuer }
  return withParameters(redirectUri, parameters)
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

function isOfHost(redirectUri: string): boolean {
  return ['https:', 'http:'].includes(schemeOf(redirectUri))
}

/** With its colon. The part after a private scheme belongs to the application and is not parsed. */
function schemeOf(redirectUri: string): string {
  return redirectUri.slice(0, redirectUri.indexOf(':') + 1).toLowerCase()
}
