/** The authorization endpoint and what belongs to it. decisions.md 7.3, 7.6; RFC 6749, 9126. */
import { type ActorRef, defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import {
  consumeAuthorizationRequests,
  findAuthorizationRequest,
  findEndedAuthorizationRequest,
} from '../../../storage/oauth/authorization-requests.js'
import {
  type AuthorizingClientRow,
  isDeletedClientError,
} from '../../../storage/oauth/applications.js'
import { listConsents, withdrawConsent } from '../../../storage/oauth/consents.js'
import { activeClient } from '../clients/active-client.js'
import { ANOTHER_TENANT, CONFLICTING_TENANT, namedTenant } from '../clients/named-tenant.js'
import { browserSessions } from '../../identity/sessions/protocol.js'
import type { AssuranceLevel } from '../../domain/assurance.js'
import { isUuid } from '../../domain/ids.js'
import { keys } from '../signing-keys/protocol.js'
import { tenants, type TenantsProtocol } from '../../identity/tenants/protocol.js'
import { type OAuthForm, readForm } from '../tokens/form.js'
import { tokens, type TokensProtocol } from '../tokens/protocol.js'
import { refuseGone } from '../tokens/refusals.js'
import type { OidcSettings } from '../tokens/settings.js'
import { handleSha256, type Outcome, proceed } from './interaction.js'
import type { InteractionNeeds } from './pending-request.js'
import { isRegistered, judge } from './validate-request.js'
import { errorLocation, startOf } from './locations.js'
import { endSession } from './logout.js'
import type { AuthorizationRequest } from './parameters.js'
import {
  type AuthorizationProtocol,
  authorization,
  type BeginAuthorization,
  type Refused,
  type RefusedError,
  REQUEST_URI_PREFIX,
} from './protocol.js'
import { push } from './push.js'
import { userinfo } from './userinfo.js'

export type AuthorizationNeeds = InteractionNeeds & {
  readonly tokens: ActorRef<TokensProtocol>
  readonly tenants: ActorRef<TenantsProtocol>
  readonly oidc: Pick<OidcSettings, 'code_ttl_secs' | 'par_ttl_secs'>
  /** The highest level that a sign-in can reach: 3 with passkeys. */
  readonly levelMax: AssuranceLevel
}

export const authorizationActor = defineActor<AuthorizationProtocol, AuthorizationNeeds>({
  address: authorization,
  asks: { sessions: browserSessions, keys, tenants, tokens },
  mailbox: { capacity: 4096, inflightMax: 512 },
  lane: {
    // Two answers to one question take turns here; across processes the row decides.
    resume: ({ handle }) => handle,
    decide: ({ handle }) => handle,
  },
  // A failure is one statement's or one request's: there is no state that a restart would mend.
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { database, clock, issuer, tokens, tenants } = needs

    const clientOf = (clientId: string, context: MessageContext) =>
      activeClient(database, clientId, context)
    const pushing = { ...needs, clientOf }

    /** The client that a form names, in the tenant that it names. */
    async function namedClient(
      form: OAuthForm,
      host: string,
      context: MessageContext,
    ): Promise<AuthorizingClientRow | Refused> {
      const clientId = form.get('client_id')
      if (clientId === null) return refused('invalid_request', 'client_id is missing')
      const client = await clientOf(clientId, context)
      if (client === null) return refused('invalid_client', 'there is no such application')
      const named = await namedTenant(tenants, form, client, host, context)
      if (named === 'conflicting') return refused('invalid_request', CONFLICTING_TENANT)
      return named === 'theirs' ? client : refused('invalid_client', ANOTHER_TENANT)
    }

    /** By the handle of a way back, or by a whole request_uri: the two are never taken for each other. */
    async function kept(handle: string, context: MessageContext) {
      // The tenant of a request is not known before the request is: it crosses tenants.
      return database.system(
        (tx) =>
          findAuthorizationRequest<AuthorizationRequest>(tx, handleSha256(handle), clock.now()),
        { signal: context.signal },
      )
    }

    /** A pushed request, opened by the client that pushed it. Nothing else in the form counts. */
    async function opened(
      requestUri: string,
      client: AuthorizingClientRow,
      sessionToken: string | null,
      context: MessageContext,
    ): Promise<Outcome> {
      const row = await kept(requestUri, context)
      if (row === undefined || row.clientId !== client.id)
        return refused('invalid_request_uri', 'the request is unknown, expired or was used')
      const { request } = row
      if (!isRegistered(request.redirectUri, client.redirectUris))
        return refused('invalid_redirect_uri', 'redirect_uri is not one of this application')
      const requestedAt = clock.now()
      return proceed(
        needs,
        {
          client,
          request,
          requestedAt,
          pushedId: row.id,
          kept: null,
          sessionToken,
          allowed: null,
        },
        context,
      )
    }

    /** A request that waits, with its client as it is now. */
    async function waiting(handle: string, context: MessageContext) {
      if (!HANDLE.test(handle)) return null
      const row = await kept(handle, context)
      const client = row === undefined ? null : await clientOf(row.clientId, context)
      if (row === undefined || client === null) return null
      return isRegistered(row.request.redirectUri, client.redirectUris) ? { row, client } : null
    }

    /** Who presses Back after the answer, or comes too late, is shown the way to begin anew. */
    async function over(handle: string, context: MessageContext): Promise<Refused> {
      if (!HANDLE.test(handle)) return OVER
      // The tenant of a request is not known before the request is: it crosses tenants.
      const row = await database.system(
        (tx) => findEndedAuthorizationRequest<AuthorizationRequest>(tx, handleSha256(handle)),
        { signal: context.signal },
      )
      const client = row === undefined ? null : await clientOf(row.clientId, context)
      if (row === undefined || client === null) return OVER
      const { redirectUri, uiLocales } = row.request
      const url = isRegistered(redirectUri, client.redirectUris) ? startOf(redirectUri) : null
      const back = url === null ? undefined : { clientName: client.name, url }
      return { ...OVER, uiLocales, back }
    }

    async function begun(
      form: OAuthForm,
      { host, sessionToken }: BeginAuthorization,
      context: MessageContext,
    ): Promise<Outcome> {
      if (form.get('tenant_id') !== null && form.get('tenant_slug') !== null)
        return refused('invalid_request', CONFLICTING_TENANT)
      const client = await namedClient(form, host, context)
      if ('tag' in client) return client
      const requestUri = form.get('request_uri')
      if (requestUri?.startsWith(REQUEST_URI_PREFIX))
        return opened(requestUri, client, sessionToken, context)
      const verdict = judge({ form, client, pushed: false, levelMax: needs.levelMax })
      if (verdict.tag === 'refused') return verdict
      if (verdict.tag === 'returned') {
        const { error, description } = verdict
        const location = errorLocation({ ...verdict, issuer }, error, description)
        return { tag: 'answered', location }
      }
      const { request } = verdict
      const requestedAt = clock.now()
      const none = { pushedId: null, kept: null, allowed: null }
      return proceed(needs, { client, request, requestedAt, sessionToken, ...none }, context)
    }

    return {
      async begin(message, context) {
        const form = readForm(message.parameters)
        if ('repeated' in form) return refused('invalid_request', 'a parameter is repeated')
        const outcome = await begun(form, message, context).catch(unlessGone)
        return outcome.tag === 'refused'
          ? { ...outcome, uiLocales: form.get('ui_locales') }
          : outcome
      },

      async resume({ handle, sessionToken }, context) {
        const found = await waiting(handle, context)
        if (found === null) return over(handle, context)
        return proceed(needs, { ...underway(found, handle), sessionToken, allowed: null }, context)
      },

      async decide({ handle, sessionToken, sessionId, scopes, action }, context) {
        const found = await waiting(handle, context)
        if (found === null) return over(handle, context)
        const { row } = found
        if (action === 'allow')
          return proceed(
            needs,
            { ...underway(found, handle), sessionToken, allowed: { sessionId, scopes } },
            context,
          )
        const ids = [row.id, row.pushedId].filter((id) => id !== null)
        const denied = await database.tenant(row.tenantId, (tx) =>
          consumeAuthorizationRequests(tx, row.tenantId, ids, clock.now()),
        )
        if (!denied) return over(handle, context)
        const answer = { ...row.request, issuer }
        const location = errorLocation(answer, 'access_denied', 'the person said no')
        return { tag: 'answered', location }
      },

      push: (request, context) =>
        push(pushing, request, context).catch((error) => refuseGone(error, request)),

      async listConsents({ tenantId, subject }, { signal }) {
        const rows = await database.tenant(tenantId, (tx) => listConsents(tx, tenantId, subject), {
          signal,
        })
        return { tag: 'listed', consents: rows }
      },

      async withdrawConsent({ tenantId, subject, clientId }) {
        if (!isUuid(clientId)) return { tag: 'unknown_consent' }
        const ended = await database.tenant(tenantId, (tx) =>
          withdrawConsent(tx, { tenantId, subject, clientId }, clock.now()),
        )
        if (ended === undefined) return { tag: 'unknown_consent' }
        tokens.send('standingChanged', { ids: ended })
        return { tag: 'withdrawn' }
      },

      userinfo: (request, context) => userinfo({ database, tokens, tenants }, request, context),

      endSession: (request, context) => endSession(needs, request, context),
    }
  },
})

/** 32 bytes, base64url: not a request_uri. */
const HANDLE = /^[A-Za-z0-9_-]{43}$/

type Waiting = {
  readonly row: {
    readonly id: string
    readonly pushedId: string | null
    readonly request: AuthorizationRequest
    readonly createdAt: Date
  }
  readonly client: AuthorizingClientRow
}

function underway({ row, client }: Waiting, handle: string) {
  const { id, pushedId, request, createdAt } = row
  return { client, request, requestedAt: createdAt, pushedId, kept: { id, handle } }
}

const OVER: Refused = {
  tag: 'refused',
  error: 'invalid_request_uri',
  description: 'the request is unknown, expired or was answered',
}

/** The application was deleted while its request was written down. */
function unlessGone(error: unknown): Refused {
  if (!isDeletedClientError(error)) throw error
  return refused('invalid_client', 'there is no such application')
}

function refused(error: RefusedError, description: string): Refused {
  return { tag: 'refused', error, description }
}
