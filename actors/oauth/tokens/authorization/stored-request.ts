/** Continues requests that are stored: pushed ones, and those that wait for the user. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { AuthorizingClientRow } from '../../../../storage/oauth/applications.js'
import { findEndedAuthorizationRequest } from '../../../../storage/oauth/authorization-requests.js'
import { findObservedFacts } from '../../../../storage/oauth/observed-clients.js'
import { brandingOf } from '../../../domain/tenants/branding.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { answeredBefore, type Repeated } from './answered.js'
import { type AuthorizationNeeds, clientOf, findRequest, refused } from './find-request.js'
import { type Outcome, proceed } from './interaction.js'
import { codeAnswer, errorAnswer, startOf } from './locations.js'
import type { AuthorizationRequest } from './parameters.js'
import type { Allowed, PendingRequest } from './pending-request.js'
import type { Answered, AnsweredBefore, BeginAuthorization, Refused } from './protocol.js'
import { isRegistered } from './validate-request.js'
import { inTenant } from '../../../platform/in-tenant.js'

/** 32 bytes in base64url. A request_uri never matches. */
const HANDLE = /^[A-Za-z0-9_-]{43}$/

type PendingRow = {
  readonly tenantId: string
  readonly clientId: string
  readonly request: AuthorizationRequest
}

type StoredRequest = {
  readonly row: {
    readonly id: string
    readonly pushedId: string | null
    readonly request: AuthorizationRequest
    readonly createdAt: Date
  }
  readonly client: AuthorizingClientRow
}

function pendingRequest({ row, client }: StoredRequest, handle: string) {
  const { id, pushedId, request, createdAt } = row
  return { client, request, requestedAt: createdAt, pushedId, stored: { id, handle } }
}

const OVER: Refused = {
  tag: 'refused',
  error: 'invalid_request_uri',
  description: 'the request is unknown, expired or was answered',
}

/** False if the document of the client has changed since the request in what the user decides about. */
async function isSameDocument(
  needs: AuthorizationNeeds,
  { tenantId, clientId, request }: PendingRow,
  context: MessageContext,
): Promise<boolean> {
  const { documentSha256 } = request
  if (documentSha256 === undefined) return true
  const facts = await inTenant(needs.database, tenantId, context, (tx) =>
    findObservedFacts(tx, tenantId, clientId),
  )
  return facts?.documentSha256 === documentSha256
}

/** Continues a pushed request. Other parameters are ignored (RFC 9126 section 4). */
export async function continuePushed(
  needs: AuthorizationNeeds,
  requestUri: string,
  client: AuthorizingClientRow,
  browser: Pick<BeginAuthorization, 'sessionToken' | 'browserId' | 'isForeignForm' | 'address'>,
  context: MessageContext,
): Promise<Outcome> {
  const row = await findRequest(needs, requestUri, context)
  if (row === undefined || row.clientId !== client.id)
    return refused('invalid_request_uri', 'the request is unknown, expired or was used')
  const { request, id: pushedId } = row
  if (!isRegistered(request.redirectUri, client))
    return refused('invalid_redirect_uri', 'redirect_uri is not registered for the application')
  const begun = { client, request, requestedAt: needs.clock.now(), pushedId }
  return proceed(needs, { ...begun, stored: null, ...browser, allowed: null }, context)
}

/** A stored request with the current state of its client. */
export async function findPending(
  needs: AuthorizationNeeds,
  handle: string,
  context: MessageContext,
) {
  if (!HANDLE.test(handle)) return null
  const row = await findRequest(needs, handle, context)
  const client = row === undefined ? null : await clientOf(needs, row.clientId, context)
  if (row === undefined || client === null) return null
  if (!isRegistered(row.request.redirectUri, client)) return null
  return (await isSameDocument(needs, row, context)) ? { row, client } : null
}

/**
 * The outcome of an answered or expired request. The browser that decided gets its redirect again while the code
 * is of use, others an error with a link to start again at the application.
 */
export async function notPending(
  needs: AuthorizationNeeds,
  message: Repeated,
  context: MessageContext,
): Promise<Answered | AnsweredBefore | Refused> {
  const { handle } = message
  if (!HANDLE.test(handle)) return OVER
  // The tenant is unknown until the request is found, so the look-up crosses tenants.
  const row = await needs.database.system(
    (tx) => findEndedAuthorizationRequest<AuthorizationRequest>(tx, sha256(handle)),
    context,
  )
  const client = row === undefined ? null : await clientOf(needs, row.clientId, context)
  if (row === undefined || client === null) return OVER
  const { redirectUri, uiLocales } = row.request
  const isTheirs = isRegistered(redirectUri, client)
  const url = isTheirs ? startOf(redirectUri) : null
  const back = url === null ? undefined : { clientName: client.name, url }
  const before = isTheirs ? await answeredBefore(needs, message, row, context) : null
  if (before === null) return { ...OVER, uiLocales, back }
  if (before.tag === 'again') return answerOf(needs, { client, request: row.request }, before.code)
  const tenant = brandingOf(client.tenantId, client.tenantName, client.tenantSettings)
  const { decided } = before
  const { name: clientName } = client
  return { tag: 'answered_before', decided, clientName, tenant, uiLocales, back: back ?? null }
}

/** The answer with the code, or of a denial. */
export function answerOf(
  needs: AuthorizationNeeds,
  of: Pick<PendingRequest, 'client' | 'request'>,
  code: string | null,
): Promise<Answered> {
  return code === null
    ? errorAnswer(needs, of, 'access_denied', 'the user denied the request')
    : codeAnswer(needs, of, code)
}

/** Continues a stored request. One that another process answered has its outcome. */
export async function continueStored(
  needs: AuthorizationNeeds,
  message: Repeated,
  allowed: Allowed | null,
  context: MessageContext,
  choice?: PendingRequest['choice'],
): Promise<Outcome | AnsweredBefore> {
  const { handle, sessionToken, browserId, address } = message
  const found = await findPending(needs, handle, context)
  if (found === null) return notPending(needs, message, context)
  const browser = { sessionToken, browserId, isForeignForm: false, address }
  const pending = { ...pendingRequest(found, handle), ...browser, allowed, choice }
  const outcome = await proceed(needs, pending, context)
  if (outcome.tag !== 'refused' || outcome.error !== 'invalid_request_uri') return outcome
  const before = await notPending(needs, message, context)
  return before.tag === 'refused' ? outcome : before
}
