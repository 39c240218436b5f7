/** The authorization, PAR, UserInfo and end-session endpoints (RFC 6749, RFC 9126, OpenID Connect Core). */
import { type ActorRef, defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import {
  consumeAuthorizationRequests,
  findAuthorizationRequest,
  findEndedAuthorizationRequest,
} from '../../../storage/oauth/authorization-requests.js'
import {
  type AuthorizingClientRow,
  findByMetadataUrl,
  isDeletedClientError,
} from '../../../storage/oauth/applications.js'
import { listConsents, withdrawConsent } from '../../../storage/oauth/consents.js'
import { activeClient } from '../clients/active-client.js'
import { provideConsoleClient } from '../clients/console-client.js'
import { ANOTHER_TENANT, CONFLICTING_TENANT, namedTenant } from '../clients/named-tenant.js'
import { browserSessions } from '../../identity/sessions/protocol.js'
import type { AssuranceLevel } from '../../domain/assurance.js'
import { findObservedFacts } from '../../../storage/oauth/observed-clients.js'
import type { MetadataClients } from '../client-id-metadata/metadata-clients.js'
import {
  NO_SUCH_RESOURCE,
  NO_TENANT,
  type TenantOfRequest,
  tenantOfRequest,
} from '../client-id-metadata/tenant-of-request.js'
import { CONSOLE_CLIENT_ID } from '../../domain/people/console-client.js'
import { isUuid } from '../../domain/ids.js'
import type { TenancySettings } from '../../domain/tenants/resolution.js'
import { signingKeys } from '../signing-keys/protocol.js'
import { tenants, type TenantsProtocol } from '../../identity/tenants/protocol.js'
import { type OAuthForm, readForm } from '../tokens/form.js'
import { tokens, type TokensProtocol } from '../tokens/protocol.js'
import { refuseGone } from '../tokens/refusals.js'
import type { OidcSettings } from '../tokens/settings.js'
import { handleSha256, type Outcome, proceed } from './interaction.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import type { Allowed, InteractionNeeds, PendingRequest } from './pending-request.js'
import { isRegistered, validateRequest } from './validate-request.js'
import { codeLocation, errorLocation, startOf } from './locations.js'
import { answeredBefore, sealAnswer } from './answered.js'
import { noteChoice } from './choose-account.js'
import { endSession } from './logout.js'
import type { AuthorizationRequest } from './parameters.js'
import {
  type Answered,
  type AnsweredBefore,
  type AuthorizationProtocol,
  authorization,
  type BeginAuthorization,
  type Refused,
  type RefusedError,
  REQUEST_URI_PREFIX,
  type ResumeAuthorization,
} from './protocol.js'
import { push } from './push.js'
import { targetOf } from './target.js'
import { userinfo } from './userinfo.js'

export type AuthorizationNeeds = InteractionNeeds & {
  readonly tenancy: TenancySettings
  /** Clients that are identified by their metadata documents. */
  readonly metadataClients: MetadataClients
  /** `console.enabled`. */
  readonly console: boolean
  readonly tokens: ActorRef<TokensProtocol>
  readonly tenants: ActorRef<TenantsProtocol>
  readonly oidc: Pick<OidcSettings, 'code_ttl_secs' | 'par_ttl_secs'>
  /** The highest assurance level that a sign-in can reach: 3 with passkeys, otherwise 2. */
  readonly levelMax: AssuranceLevel
}

export const authorizationActor = defineActor<AuthorizationProtocol, AuthorizationNeeds>({
  address: authorization,
  asks: { sessions: browserSessions, keys: signingKeys, tenants, tokens },
  mailbox: { capacity: 4096, inflightMax: 512 },
  lane: {
    // Concurrent answers to one request are serialised here. Across processes the row decides.
    resume: ({ handle }) => handle,
    decide: ({ handle }) => handle,
    chooseAccount: ({ handle }) => handle,
  },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { database, clock, issuer, tokens, tenants, metadataClients } = needs

    const clientOf = (clientId: string, context: MessageContext) =>
      activeClient(database, clientId, context)
    const pushing = { ...needs, clientOf }

    /** The client of `client_id`, if it belongs to the tenant that the request names. */
    async function namedClient(
      form: OAuthForm,
      host: string,
      context: MessageContext,
    ): Promise<NamedClient | Refused> {
      const clientId = form.get('client_id')
      if (clientId === null) return refused('invalid_request', 'client_id is missing')
      if (clientId === CONSOLE_CLIENT_ID && needs.console) return consoleClient(form, host, context)
      if (metadataClients.isUrl(clientId)) return documentedClient(clientId, form, host, context)
      const client = await clientOf(clientId, context)
      // The id of a client that a metadata document identifies is not its client_id.
      if (client === null || client.metadataUrl !== null)
        return refused('invalid_client', 'the application does not exist')
      const named = await namedTenant(tenants, form, client, host, context)
      if (named === 'conflicting') return refused('invalid_request', CONFLICTING_TENANT)
      return named === 'theirs' ? { client } : refused('invalid_client', ANOTHER_TENANT)
    }

    /** The client of the console, in the tenant that the request or its host names. */
    async function consoleClient(
      form: OAuthForm,
      host: string,
      context: MessageContext,
    ): Promise<NamedClient | Refused> {
      const tenantId = form.get('tenant_id') ?? undefined
      const tenantSlug = form.get('tenant_slug') ?? undefined
      const isNamed = tenantId !== undefined || tenantSlug !== undefined
      const selector = isNamed ? { tenantId, tenantSlug } : { host }
      const found = await tenants.resolve(selector, context)
      if (found.tag !== 'resolved') return refused('invalid_client', 'the tenant does not exist')
      if (found.tenant.status !== 'active')
        return refused('invalid_client', 'the tenant is not active')
      const id = await provideConsoleClient(needs, found.tenant.id, context)
      const client = await clientOf(id, context)
      return client === null ? refused('invalid_client', 'the tenant is not active') : { client }
    }

    /** The client of a metadata document, in the tenant of the request. */
    async function documentedClient(
      clientId: string,
      form: OAuthForm,
      host: string,
      context: MessageContext,
    ): Promise<NamedClient | Refused> {
      const tenant = await tenantFor(form, host, context)
      if (tenant.tag === 'unknown_resource') return refused('invalid_target', NO_SUCH_RESOURCE)
      if (tenant.tag === 'nothing_named') return refused('invalid_request', NO_TENANT)
      const { tenantId } = tenant
      const named = await namedTenant(tenants, form, { tenantId }, host, context)
      if (named === 'conflicting') return refused('invalid_request', CONFLICTING_TENANT)
      if (named === 'another')
        return refused('invalid_request', 'the request is for another tenant than the one it names')
      const admitted = await metadataClients.admit(clientId, tenantId, false, context)
      if (admitted.tag === 'not_admitted')
        return admitted.why === 'rate_limited'
          ? {
              ...refused('rate_limited', admitted.description),
              retryAfterSecs: admitted.retryAfterSecs,
            }
          : refused('invalid_client', admitted.description)
      const client = await clientOf(admitted.id, context)
      if (client === null) return refused('invalid_client', 'the tenant is not active')
      return { client, documentSha256: admitted.document.sha256 }
    }

    /** A pushed request has its tenant already, so that request_uri and client_id suffice. */
    async function tenantFor(
      form: OAuthForm,
      host: string,
      context: MessageContext,
    ): Promise<TenantOfRequest> {
      const requestUri = form.get('request_uri')
      const row = requestUri?.startsWith(REQUEST_URI_PREFIX)
        ? await findRequest(requestUri, context)
        : undefined
      if (row !== undefined) return { tag: 'tenant', tenantId: row.tenantId }
      return tenantOfRequest(needs, { host, resources: form.all('resource') }, context)
    }

    /** False if the document of the client has changed since the request in what the user decides about. */
    async function isSameDocument(
      { tenantId, clientId, request }: PendingRow,
      { signal }: MessageContext,
    ): Promise<boolean> {
      const { documentSha256 } = request
      if (documentSha256 === undefined) return true
      const facts = await database.tenant(
        tenantId,
        (tx) => findObservedFacts(tx, tenantId, clientId),
        { signal },
      )
      return facts?.documentSha256 === documentSha256
    }

    /** Finds a request by its resume handle or its whole request_uri. The two formats cannot collide. */
    async function findRequest(handle: string, context: MessageContext) {
      // The tenant is unknown until the request is found, so the look-up crosses tenants.
      return database.system(
        (tx) =>
          findAuthorizationRequest<AuthorizationRequest>(tx, handleSha256(handle), clock.now()),
        { signal: context.signal },
      )
    }

    /** Continues a pushed request. Other parameters are ignored (RFC 9126 section 4). */
    async function continuePushed(
      requestUri: string,
      client: AuthorizingClientRow,
      browser: Pick<BeginAuthorization, 'sessionToken' | 'isForeignForm' | 'address'>,
      context: MessageContext,
    ): Promise<Outcome> {
      const row = await findRequest(requestUri, context)
      if (row === undefined || row.clientId !== client.id)
        return refused('invalid_request_uri', 'the request is unknown, expired or was used')
      const { request, id: pushedId } = row
      if (!isRegistered(request.redirectUri, client))
        return refused('invalid_redirect_uri', 'redirect_uri is not registered for the application')
      const begun = { client, request, requestedAt: clock.now(), pushedId }
      return proceed(needs, { ...begun, stored: null, ...browser, allowed: null }, context)
    }

    /** A stored request with the current state of its client. */
    async function findPending(handle: string, context: MessageContext) {
      if (!HANDLE.test(handle)) return null
      const row = await findRequest(handle, context)
      const client = row === undefined ? null : await clientOf(row.clientId, context)
      if (row === undefined || client === null) return null
      if (!isRegistered(row.request.redirectUri, client)) return null
      return (await isSameDocument(row, context)) ? { row, client } : null
    }

    /**
     * The outcome of an answered or expired request. The browser that decided gets its redirect again while the code
     * is of use, others an error with a link to start again at the application.
     */
    async function notPending(
      { handle, sessionToken }: ResumeAuthorization,
      context: MessageContext,
    ): Promise<Answered | AnsweredBefore | Refused> {
      if (!HANDLE.test(handle)) return OVER
      // The tenant is unknown until the request is found, so the look-up crosses tenants.
      const row = await database.system(
        (tx) => findEndedAuthorizationRequest<AuthorizationRequest>(tx, handleSha256(handle)),
        { signal: context.signal },
      )
      const client = row === undefined ? null : await clientOf(row.clientId, context)
      if (row === undefined || client === null) return OVER
      const { redirectUri, uiLocales } = row.request
      const isTheirs = isRegistered(redirectUri, client)
      const url = isTheirs ? startOf(redirectUri) : null
      const back = url === null ? undefined : { clientName: client.name, url }
      const before = isTheirs ? await answeredBefore(needs, { handle, sessionToken }, row) : null
      if (before === null) return { ...OVER, uiLocales, back }
      if (before.tag === 'again')
        return { tag: 'answered', location: locationOf(row.request, before.code) }
      const tenant = brandingOf(client.tenantId, client.tenantName, client.tenantSettings)
      return { tag: 'answered_before', tenant, uiLocales, back: back ?? null }
    }

    /** The redirect with the code, or of a denial. */
    function locationOf(request: AuthorizationRequest, code: string | null): string {
      const answer = { ...request, issuer }
      return code === null
        ? errorLocation(answer, 'access_denied', 'the user denied the request')
        : codeLocation(answer, code)
    }

    /** Continues a stored request. One that another process answered has its outcome. */
    async function continueStored(
      message: ResumeAuthorization,
      allowed: Allowed | null,
      context: MessageContext,
      choice?: PendingRequest['choice'],
    ): Promise<Outcome | AnsweredBefore> {
      const { handle, sessionToken, address } = message
      const found = await findPending(handle, context)
      if (found === null) return notPending(message, context)
      const browser = { sessionToken, isForeignForm: false, address }
      const pending = { ...pendingRequest(found, handle), ...browser, allowed, choice }
      const outcome = await proceed(needs, pending, context)
      if (outcome.tag !== 'refused' || outcome.error !== 'invalid_request_uri') return outcome
      const before = await notPending(message, context)
      return before.tag === 'refused' ? outcome : before
    }

    async function beginRequest(
      form: OAuthForm,
      { host, sessionToken, isForeignForm, address }: BeginAuthorization,
      context: MessageContext,
    ): Promise<Outcome> {
      if (form.get('tenant_id') !== null && form.get('tenant_slug') !== null)
        return refused('invalid_request', CONFLICTING_TENANT)
      const browser = { sessionToken, isForeignForm, address }
      const named = await namedClient(form, host, context)
      if ('tag' in named) return named
      const { client, documentSha256 } = named
      const requestUri = form.get('request_uri')
      if (requestUri?.startsWith(REQUEST_URI_PREFIX))
        return continuePushed(requestUri, client, browser, context)
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
        const location = errorLocation({ ...verdict, issuer }, error, description)
        return { tag: 'answered', location }
      }
      const { request } = verdict
      const requestedAt = clock.now()
      const none = { pushedId: null, stored: null, allowed: null }
      const pending = { client, request, requestedAt, ...browser, ...none }
      return proceed(needs, pending, context)
    }

    return {
      async begin(message, context) {
        const form = readForm(message.parameters)
        if ('repeated' in form) return refused('invalid_request', 'a parameter is repeated')
        const outcome = await beginRequest(form, message, context).catch(refuseDeletedClient)
        return outcome.tag === 'refused'
          ? { ...outcome, uiLocales: form.get('ui_locales') }
          : outcome
      },

      resume: (message, context) => continueStored(message, null, context),

      async chooseAccount(message, context) {
        const found = await findPending(message.handle, context)
        if (found === null) return notPending(message, context)
        const choice = await noteChoice(needs, found.row, message, context)
        return continueStored(message, null, context, choice)
      },

      async decide(message, context) {
        const { handle, sessionToken, sessionId, scopes } = message
        if (message.action === 'allow')
          return continueStored(message, { sessionId, scopes }, context)
        const found = await findPending(handle, context)
        if (found === null) return notPending(message, context)
        const { row } = found
        const answer =
          sessionToken === null ? null : sealAnswer(needs.random, { handle, sessionToken }, null)
        const ids = [row.id, row.pushedId].filter((id) => id !== null)
        const denied = await database.tenant(row.tenantId, (tx) =>
          consumeAuthorizationRequests(tx, row.tenantId, ids, clock.now(), answer),
        )
        if (!denied) return notPending(message, context)
        return { tag: 'answered', location: locationOf(row.request, null) }
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
        const ended = await database.tenant(tenantId, async (tx) => {
          const id = isUuid(clientId)
            ? clientId
            : (await findByMetadataUrl(tx, tenantId, clientId))?.id
          if (id === undefined) return undefined
          return withdrawConsent(tx, { tenantId, subject, clientId: id }, clock.now())
        })
        if (ended === undefined) return { tag: 'unknown_consent' }
        tokens.send('invalidate', { ids: ended })
        return { tag: 'withdrawn' }
      },

      userinfo: (request, context) =>
        userinfo({ database, tokens, tenants, issuer }, request, context),

      endSession: (request, context) => endSession(needs, request, context),
    }
  },
})

/** 32 bytes in base64url. A request_uri never matches. */
const HANDLE = /^[A-Za-z0-9_-]{43}$/

type NamedClient = {
  readonly client: AuthorizingClientRow
  /** The metadata document that identifies the client. Absent for a registered one. */
  readonly documentSha256?: string | undefined
}

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

/** Maps the foreign-key error if the application was deleted during its request. */
function refuseDeletedClient(error: unknown): Refused {
  if (!isDeletedClientError(error)) throw error
  return refused('invalid_client', 'the application does not exist')
}

function refused(error: RefusedError, description: string): Refused {
  return { tag: 'refused', error, description }
}
