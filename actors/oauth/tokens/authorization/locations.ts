/** Authorization responses and their redirect locations (RFC 6749 section 4.1.2, RFC 9207, JARM). */
import type { ActorRef } from '../../../../runtime/kernel/actor.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { AuthorizingClientRow } from '../../../../storage/oauth/applications.js'
import type { SigningKeysProtocol } from '../../signing-keys/protocol.js'
import { brandingOf } from '../../../domain/tenants/branding.js'
import type { AuthorizationRequest } from './parameters.js'
import type { Answered, ReturnedError } from './protocol.js'

/** A type that is not the ID token's: neither can stand for the other. */
const SIGNED_TYPE = 'authorization-response+jwt'
const SIGNED_SECS = 600

/** A request, and its client. */
type Answering = {
  readonly client: Pick<
    AuthorizingClientRow,
    | 'id'
    | 'metadataUrl'
    | 'tenantId'
    | 'tenantName'
    | 'tenantSettings'
    | 'name'
    | 'authorizationSignedResponseAlg'
  >
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

type Parameters = Readonly<Record<string, string | null>>
export type AnswerNeeds = {
  readonly keys: ActorRef<SigningKeysProtocol>
  readonly clock: Clock
  readonly issuer: string
}

/** Returns to the client with the parameters, in the response mode of the request. */
async function answer(
  needs: AnswerNeeds,
  { client, request }: Answering,
  parameters: Parameters,
): Promise<Answered> {
  const { redirectUri, responseMode = 'query', uiLocales } = request
  const all = { ...parameters, state: request.state, iss: needs.issuer }
  const isSigned = responseMode.endsWith('jwt')
  const sent: Parameters = isSigned ? { response: await signed(needs, client, all) } : all
  if (!responseMode.startsWith('form_post'))
    return { tag: 'answered', location: withParameters(redirectUri, sent) }
  const given = Object.entries(sent).filter((one): one is [string, string] => one[1] !== null)
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

/** The parameters as a JWT (JWT Secured Authorization Response Mode section 2). */
async function signed(
  { keys, clock, issuer }: AnswerNeeds,
  { id, metadataUrl, authorizationSignedResponseAlg: algorithm }: Answering['client'],
  parameters: Parameters,
): Promise<string> {
  const given = Object.entries(parameters).filter(([, value]) => value !== null)
  const jwt = { iss: issuer, aud: metadataUrl ?? id, exp: clock.nowSecs() + SIGNED_SECS }
  const claims = JSON.stringify({ ...Object.fromEntries(given), ...jwt })
  const answer = await keys.sign({ typ: SIGNED_TYPE, claims, algorithm: algorithm ?? 'RS256' })
  if (answer.tag !== 'signed') throw new Error('no signing key is available')
  return answer.token
}

export const codeAnswer = (needs: AnswerNeeds, of: Answering, code: string) =>
  answer(needs, of, { code })

export const errorAnswer = (
  needs: AnswerNeeds,
  of: Answering,
  error: ReturnedError,
  description: string,
) => answer(needs, of, { error, error_description: description })

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
