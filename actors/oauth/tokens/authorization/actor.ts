/** The authorization, PAR, UserInfo and end-session endpoints (RFC 6749, RFC 9126, OpenID Connect Core). */
import { defineActor, type Handler, type MessageContext } from '../../../../runtime/kernel/actor.js'
import { findByMetadataUrl, isDeletedClientError } from '../../../../storage/oauth/applications.js'
import { consumeAuthorizationRequests } from '../../../../storage/oauth/authorization-requests.js'
import { listConsents, withdrawConsentRow } from '../../../../storage/oauth/consents.js'
import { isUuid } from '../../../domain/ids.js'
import { browserSessions } from '../../../identity/sign-in/sessions/protocol.js'
import { tenants } from '../../../identity/users/tenants/protocol.js'
import { CONFLICTING_TENANT } from '../clients/named-tenant.js'
import { signingKeys } from '../../signing-keys/protocol.js'
import { type OAuthForm, readForm } from '../form.js'
import { tokens } from '../protocol.js'
import { refuseGone } from '../refusals.js'
import { sealDecision } from './answered.js'
import { noteChoice } from './choose-account.js'
import { type AuthorizationNeeds, clientOf, namedClient, refused } from './find-request.js'
import { type Outcome, proceed } from './interaction.js'
import { errorAnswer } from './locations.js'
import { endSession } from './logout.js'
import {
  type AuthorizationProtocol,
  authorization,
  type BeginAuthorization,
  type Refused,
  REQUEST_URI_PREFIX,
} from './protocol.js'
import { pushAuthorizationRequest } from './push.js'
import {
  answerOf,
  continuePushed,
  continueStored,
  findPending,
  notPending,
} from './stored-request.js'
import { targetOf } from './target.js'
import { getUserinfo } from './userinfo.js'
import { validateRequest } from './validate-request.js'
import { inTenant } from '../../../platform/in-tenant.js'

type Handling<K extends keyof AuthorizationProtocol> = Handler<
  AuthorizationNeeds,
  AuthorizationProtocol,
  K
>

const authorize: Handling<'authorize'> = async (needs, message, context) => {
  const form = readForm(message.parameters)
  if ('repeated' in form) return refused('invalid_request', 'a parameter is repeated')
  const outcome = await beginRequest(needs, form, message, context).catch(refuseDeletedClient)
  return outcome.tag === 'refused' ? { ...outcome, uiLocales: form.get('ui_locales') } : outcome
}

const chooseAccount: Handling<'chooseAccount'> = async (needs, message, context) => {
  const found = await findPending(needs, message.handle, context)
  if (found === null) return notPending(needs, message, context)
  const choice = await noteChoice(needs, found.row, message, context)
  return continueStored(needs, message, null, context, choice)
}

const decideAuthorization: Handling<'decideAuthorization'> = async (needs, message, context) => {
  const { handle, sessionId, scopes } = message
  if (message.action === 'allow')
    return continueStored(needs, message, { sessionId, scopes }, context)
  const found = await findPending(needs, handle, context)
  if (found === null) return notPending(needs, message, context)
  const { row } = found
  const answer = sealDecision(needs.random, message, { codeSha256: null })
  const ids = [row.id, row.pushedId].filter((id) => id !== null)
  const denied = await needs.database.tenant(row.tenantId, (tx) =>
    consumeAuthorizationRequests(tx, row.tenantId, ids, needs.clock.now(), answer),
  )
  if (!denied) return notPending(needs, message, context)
  return answerOf(needs, { client: found.client, request: row.request }, null)
}

const withdraw: Handling<'withdrawConsent'> = async (needs, { tenantId, subject, clientId }) => {
  return needs.database.tenant(tenantId, async (tx) => {
    const id = isUuid(clientId) ? clientId : (await findByMetadataUrl(tx, tenantId, clientId))?.id
    if (id === undefined) return { tag: 'unknown_consent' }
    const consent = { tenantId, subject, clientId: id }
    const ended = await withdrawConsentRow(tx, consent, needs.clock.now())
    if (ended === undefined) return { tag: 'unknown_consent' }
    tx.forget(ended)
    return { tag: 'withdrawn' }
  })
}

async function beginRequest(
  needs: AuthorizationNeeds,
  form: OAuthForm,
  { host, sessionToken, browserId, isForeignForm, address }: BeginAuthorization,
  context: MessageContext,
): Promise<Outcome> {
  if (form.get('tenant_id') !== null && form.get('tenant_slug') !== null)
    return refused('invalid_request', CONFLICTING_TENANT)
  const browser = { sessionToken, browserId, isForeignForm, address }
  const named = await namedClient(needs, form, host, context)
  if ('tag' in named) return named
  const { client, documentSha256 } = named
  const requestUri = form.get('request_uri')
  if (requestUri?.startsWith(REQUEST_URI_PREFIX))
    return continuePushed(needs, requestUri, client, browser, context)
  const target = await targetOf(needs, form, client, context)
  const { levelMax } = needs
  const verdict = validateRequest({
    form,
    client,
    documentSha256,
    pushed: false,
    levelMax,
    target,
  })
  if (verdict.tag === 'refused') return verdict
  if (verdict.tag === 'returned') {
    const { error, description } = verdict
    return errorAnswer(needs, { client, request: verdict }, error, description)
  }
  const { request } = verdict
  const requestedAt = needs.clock.now()
  const none = { pushedId: null, stored: null, allowed: null }
  const pending = { client, request, requestedAt, ...browser, ...none }
  return proceed(needs, pending, context)
}

/** Maps the foreign-key error if the application was deleted during its request. */
function refuseDeletedClient(error: unknown): Refused {
  if (!isDeletedClientError(error)) throw error
  return refused('invalid_client', 'the application does not exist')
}

export const authorizationActor = defineActor<AuthorizationProtocol, AuthorizationNeeds>({
  address: authorization,
  asks: { sessions: browserSessions, keys: signingKeys, tenants, tokens },
  mailbox: { capacity: 4096, inflightMax: 512 },
  lane: {
    // Concurrent answers to one request are serialised here. Across processes the row decides.
    resumeAuthorization: ({ handle }) => handle,
    decideAuthorization: ({ handle }) => handle,
    chooseAccount: ({ handle }) => handle,
  },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  handlers: {
    // Also the operation `authorizeByForm`.
    authorize,
    async resumeAuthorization(needs, message, context) {
      return continueStored(needs, message, null, context)
    },
    chooseAccount,
    decideAuthorization,
    pushAuthorizationRequest: (needs, message, context) =>
      pushAuthorizationRequest(
        { ...needs, clientOf: (id, context) => clientOf(needs, id, context) },
        message,
        context,
      ).catch(refuseGone),
    async listConsents({ database }, { tenantId, subject }, context) {
      const rows = await inTenant(database, tenantId, context, (tx) =>
        listConsents(tx, tenantId, subject),
      )
      return { tag: 'listed', consents: rows }
    },
    withdrawConsent: withdraw,
    getUserinfo,
    endSession,
  },
})
