/**
 * Takes a valid authorization request through sign-in and consent to its code. Each step decides
 * from the request and the current session, because the return of a browser proves nothing (OpenID
 * Connect Core sections 3.1.2.1 to 3.1.2.6, RFC 9470).
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { insertAuthorizationRequest } from '../../../../storage/oauth/authorization-requests.js'
import { findObservedFacts } from '../../../../storage/oauth/observed-clients.js'
import { hostOfClientId } from '../clients/metadata/client-id.js'
import { findOperatorScopes } from '../../../../storage/identity/console/operators.js'
import { type ConsentsBefore, findConsents } from '../../../../storage/oauth/consents.js'
import { type AssuranceLevel, type SessionDemand, unmetDemand } from '../../../domain/assurance.js'
import { scopesOfClaims } from '../../../domain/person-claims.js'
import { isLoopbackOnly } from '../../../domain/redirect-uri.js'
import { CONSOLE_CLIENT_ID } from '../../../domain/people/console-client.js'
import {
  CREDENTIAL_DETAILS_TYPE,
  CREDENTIAL_SCOPES,
} from '../../../domain/credentials/catalogue.js'
import { sessionScopes } from '../../../domain/scopes.js'
import type { BrowserSession } from '../../../identity/sign-in/sessions/protocol.js'
import { brandingOf } from '../../../domain/tenants/branding.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import {
  namedResources,
  resourceLookup,
  resourceScopesWithin,
  scopesBeside,
} from '../issue/api-resource.js'
import { knownAudience, tokenAudience } from '../issue/audience.js'
import { DENIED } from '../issue/access-policies.js'
import { accessOf } from './access.js'
import { accountChoice, accountsShown } from './choose-account.js'
import { type Granting, issueCode } from './code.js'
import { hasKnownLocations, offeredTo } from './credential-requests.js'
import { readIdTokenHint } from './id-token-hint.js'
import { errorAnswer, formTarget, hostOf } from './locations.js'
import type {
  AccountsShown,
  Answered,
  ConsentAsked,
  DocumentedClient,
  Interaction,
  Refused,
  ReturnedError,
} from './protocol.js'
import { UNKNOWN_AUDIENCE } from './target.js'
import { scopesAt } from './resource-consent.js'
import type { Allowed, InteractionNeeds, PendingRequest } from './pending-request.js'
import { inTenant } from '../../../platform/in-tenant.js'

/** Time to sign in and consent: the hour of a sign-in and a margin. */
const REQUEST_MS = 75 * 60_000
const HANDLE_BYTES = 32
const RESUME_PATH = '/oauth/authorize/resume'

export type Outcome = Answered | AccountsShown | Interaction | ConsentAsked | Refused

export async function proceed(
  needs: InteractionNeeds,
  pending: PendingRequest,
  context: MessageContext,
): Promise<Outcome> {
  const { client, request } = pending
  const back = (error: ReturnedError, description: string) =>
    errorAnswer(needs, pending, error, description)
  const person = await demandedPerson(needs, pending, context)
  if ('fault' in person) return back('invalid_request', person.fault)
  const { sub } = person
  const { database, issuer } = needs
  const named = await namedResources(resourceLookup(database, null), client, request.audience)
  if ('fault' in named) return back('invalid_target', named.fault)
  const { resources } = named
  const audience =
    resources.length > 0
      ? resources.map(({ resource }) => resource)
      : await knownAudience(database, issuer, client, request.audience, context)
  if (audience === null) return back('invalid_target', UNKNOWN_AUDIENCE)
  if (!(await hasKnownLocations(needs, client, request.details, context)))
    return back('invalid_authorization_details', 'locations must name the credential issuer')

  const access = await accessOf(needs, pending, context)
  if (access === 'denied') return back('access_denied', DENIED)
  const found = await findSession(needs, pending, access, sub, context)
  if (found.tag === 'none') return back(...found.error)
  if (found.tag !== 'session') return found
  const { session } = found
  const offered = await offeredTo(needs, request.issuerState, session, context)
  if ('fault' in offered) return back(...offered.fault)
  const userScopes: readonly string[] = [
    ...sessionScopes(session),
    ...(await appointedScopes(needs, pending, session, context)),
    ...CREDENTIAL_SCOPES,
  ]
  const may = (scope: string) => client.scopes.includes(scope) && userScopes.includes(scope)
  const held = scopesBeside(client).filter((scope) => userScopes.includes(scope))
  const scopes =
    resources.length > 0
      ? resourceScopesWithin(request.scopes, held, resources)
      : request.scopes.filter(may)
  const isEmpty = scopes.length === 0 && (resources.length === 0 || request.scopes.length > 0)
  if (isEmpty) return back('access_denied', 'the user has none of the requested scopes')
  const granting = {
    ...grantingOf(
      pending,
      session,
      {
        scopes,
        audience: grantedAudience(pending, { audience, resources, scopes }, issuer),
        resources,
      },
      may,
    ),
    offerId: offered.offerId,
  }

  if (isAllowed(pending.allowed, granting)) return issueCode(needs, pending, granting, context)
  const before = await consentsBefore(needs, pending, granting, context)
  if (!asksConsent(pending, granting, before)) return issueCode(needs, pending, granting, context)
  if (request.prompt.none) return back('consent_required', 'the user has not given consent yet')
  return askConsent(needs, pending, granting, before, context)
}

/**
 * What a person is appointed to, for the console of the control plane only. It needs a second factor, because it reaches
 * the whole deployment.
 */
async function appointedScopes(
  { database }: InteractionNeeds,
  { client }: PendingRequest,
  { tenantId, accountId, level }: BrowserSession,
  context: MessageContext,
): Promise<readonly string[]> {
  if (client.metadataUrl !== CONSOLE_CLIENT_ID || level < 2) return []
  // Accounts belong to no tenant, so the look-up crosses tenants.
  return database.system((tx) => findOperatorScopes(tx, tenantId, accountId), context)
}

type Found =
  | { readonly tag: 'session'; readonly session: BrowserSession }
  | AccountsShown
  | Interaction
  | { readonly tag: 'none'; readonly error: readonly [ReturnedError, string] }

/** A session that satisfies the request, the page that creates one, or an error. */
async function findSession(
  needs: InteractionNeeds,
  pending: PendingRequest,
  levelMin: AssuranceLevel,
  sub: string | null,
  context: MessageContext,
): Promise<Found> {
  const { client, request, requestedAt, sessionToken, stored, isForeignForm } = pending
  if (isForeignForm && stored === null && sessionToken === null) {
    // The redirect brings the cookie.
    const handle = needs.random.token(HANDLE_BYTES)
    await store(needs, pending, handle, context)
    return { tag: 'interaction', location: `${RESUME_PATH}/${handle}` }
  }
  const asked = demandOf(pending)
  const demand = { ...asked, level: asked.level > levelMin ? asked.level : levelMin }
  if (request.prompt.none) {
    const read = await needs.sessions.read({ token: sessionToken }, context)
    const session = read.tag === 'open' ? read.session : null
    const theirs = session?.tenantId === client.tenantId && (sub === null || session.sub === sub)
    const unmet =
      session !== null && theirs ? unmetDemand(session, demand, needs.clock.now()) : 'stale'
    if (session !== null && unmet === null) return { tag: 'session', session }
    return unmet === 'level'
      ? {
          tag: 'none',
          error: ['unmet_authentication_requirements', 'a higher assurance level is needed'],
        }
      : { tag: 'none', error: ['login_required', 'no user is signed in as the request requires'] }
  }
  if (sub !== null && (await signedInOther(needs, pending, sub, context)))
    return { tag: 'none', error: ['login_required', 'another user signed in'] }
  const handle = pending.stored?.handle ?? needs.random.token(HANDLE_BYTES)
  const choice = await accountChoice(needs, pending, sub, context)
  if (choice.tag === 'due' && pending.choice !== 'another') {
    await store(needs, pending, handle, context)
    return accountsShown(pending, handle, choice.session)
  }
  // A session that the user did not choose does not count, and one that waits for its second factor neither.
  const signsInAnew = choice.tag !== 'made' && sessionToken !== null
  const since = choice.tag === 'due' ? needs.clock.now() : requestedAt
  const verdict = await needs.sessions.demand(
    {
      token: sessionToken,
      tenantId: client.tenantId,
      demand: signsInAnew ? { ...demand, since } : demand,
      flow: {
        returnTo: `${RESUME_PATH}/${handle}`,
        reason: { tag: 'application', name: client.name, ...(signsInAnew ? { anyone: true } : {}) },
        ...(request.loginHint === null ? {} : { loginHint: request.loginHint.slice(0, 320) }),
        ...(request.uiLocales === null ? {} : { uiLocales: request.uiLocales.slice(0, 256) }),
        formTargets: [formTarget(request.redirectUri)],
      },
      ...(sub === null ? {} : { sub }),
    },
    context,
  )
  if (verdict.tag === 'met') return { tag: 'session', session: verdict.session }
  await store(needs, pending, handle, context)
  return { tag: 'interaction', location: verdict.location }
}

/**
 * True if another user signed in for a request that is for one user (OpenID Connect Core section
 * 3.1.2.1, `id_token_hint`). The application gets an error instead of an endless sign-in loop.
 */
async function signedInOther(
  { sessions }: InteractionNeeds,
  { client, requestedAt, stored, sessionToken }: PendingRequest,
  sub: string,
  context: MessageContext,
): Promise<boolean> {
  if (stored === null) return false
  const read = await sessions.read({ token: sessionToken }, context)
  if (read.tag !== 'open' || read.session.tenantId !== client.tenantId) return false
  return read.session.sub !== sub && read.session.createdAt >= requestedAt
}

/** `max_age` and `prompt=login` as a time: the user must have signed in at or after it. */
function demandOf({
  request: { level, maxAgeSecs, prompt },
  requestedAt,
}: Pick<PendingRequest, 'request' | 'requestedAt'>): SessionDemand {
  const newest = requestedAt.getTime()
  const oldest = maxAgeSecs === null ? null : newest - maxAgeSecs * 1000
  const since = prompt.login ? newest : oldest
  return { level, ...(since === null ? {} : { since: new Date(since) }) }
}

/** The user that the request is for. `sub` is null if any user is accepted. */
export async function demandedPerson(
  { keys, issuer }: Pick<InteractionNeeds, 'keys' | 'issuer'>,
  { client, request }: Pick<PendingRequest, 'client' | 'request'>,
  context: MessageContext,
): Promise<{ readonly sub: string | null } | { readonly fault: string }> {
  const { idTokenHint, sub } = request
  if (idTokenHint === null) return { sub }
  const hint = await readIdTokenHint(keys, issuer, idTokenHint, context)
  if (hint === null || hint.tenantId !== client.tenantId)
    return { fault: 'id_token_hint is not an ID token of this service' }
  return sub === null || sub === hint.subject
    ? { sub: hint.subject }
    : { fault: 'the hints name different users' }
}

/** The audience of the token: the API resources alone, otherwise with the issuer where it is needed. */
function grantedAudience(
  { client, request }: PendingRequest,
  { audience, resources, scopes }: Pick<Granting, 'audience' | 'resources' | 'scopes'>,
  issuer: string,
): readonly string[] {
  if (resources.length > 0) return audience
  const named = tokenAudience(audience, { own: client.audience, issuer, scopes })
  // Details for credentials need a token that the credential issuer accepts, whatever its scopes.
  const asksCredential = request.details?.some(({ type }) => type === CREDENTIAL_DETAILS_TYPE)
  return asksCredential === true && !named.includes(issuer) ? [...named, issuer] : named
}

function grantingOf(
  { request }: PendingRequest,
  session: BrowserSession,
  { scopes, audience, resources }: Pick<Granting, 'scopes' | 'audience' | 'resources'>,
  may: (scope: string) => boolean,
): Omit<Granting, 'offerId'> {
  const { claims } = request
  const allowed = (names: readonly string[]) =>
    names.filter((name) => scopesOfClaims([name]).every(may))
  const requested = claims && {
    idToken: allowed(claims.idToken),
    userinfo: allowed(claims.userinfo),
  }
  const names = [...(requested?.idToken ?? []), ...(requested?.userinfo ?? [])]
  return {
    session,
    scopes,
    // An individually requested claim needs the same consent as its scope.
    consented: [...new Set([...scopes, ...scopesOfClaims(names)])],
    audience,
    resources,
    claims: requested,
  }
}

/**
 * True if the user consented to all of it in this session. The grant is computed again: if the
 * application got more scopes after the page was shown, the user is requested again.
 */
function isAllowed(allowed: Allowed | null, { session, consented }: Granting): boolean {
  return (
    allowed?.sessionId === session.id && consented.every((scope) => allowed.scopes.includes(scope))
  )
}

/** The scopes to which the user consented before, for the client and each of its resources. */
async function consentsBefore(
  { database }: InteractionNeeds,
  { client }: PendingRequest,
  { session, resources }: Granting,
  context: MessageContext,
): Promise<ConsentsBefore> {
  const { tenantId, sub: subject } = session
  const key = { tenantId, subject, clientId: client.id }
  return inTenant(database, tenantId, context, (tx) =>
    findConsents(
      tx,
      key,
      resources.map(({ id }) => id),
    ),
  )
}

/** True if the user must be asked. A consent is for a client, a resource and scopes. */
function asksConsent(
  { client, request }: PendingRequest,
  { consented, resources }: Granting,
  { scopes, ofResources }: ConsentsBefore,
): boolean {
  // The console is a part of the service: it shows users what they may see already.
  if (client.metadataUrl === CONSOLE_CLIENT_ID) return false
  // authorization_details describe one specific action, so each request needs consent.
  if (request.prompt.consent || request.details !== null) return true
  if (resources.length === 0) return !consented.every((scope) => scopes.includes(scope))
  return !resources.every((resource) => {
    const given = ofResources.find(({ resourceId }) => resourceId === resource.id)
    return (
      given !== undefined &&
      scopesAt(resource, resources, consented).every((scope) => given.scopes.includes(scope))
    )
  })
}

async function askConsent(
  needs: InteractionNeeds,
  pending: PendingRequest,
  { session, consented, resources }: Granting,
  before: ConsentsBefore,
  context: MessageContext,
): Promise<ConsentAsked> {
  const { client, request } = pending
  const handle = pending.stored?.handle ?? needs.random.token(HANDLE_BYTES)
  await store(needs, pending, handle, context)
  const given =
    resources.length === 0 ? before.scopes : before.ofResources.flatMap(({ scopes }) => scopes)
  const described = resources.flatMap(({ scopes }) => scopes)
  return {
    tag: 'consent',
    handle,
    sessionId: session.id,
    tenant: brandingOf(client.tenantId, client.tenantName, client.tenantSettings),
    clientName: client.name,
    clientHost: hostOf(request.redirectUri),
    documented: await documentedClient(needs, client, context),
    email: session.email || session.displayName,
    scopes: consented,
    resources: resources.map(({ name, resource }) => ({ name, resource })),
    resourceScopes: described.filter(({ name }) => consented.includes(name)),
    newScopes: given.length === 0 ? [] : consented.filter((scope) => !given.includes(scope)),
    loopbackOnly: isLoopbackOnly(client.redirectUris),
    firstSeenAt: client.selfRegistered ? client.createdAt : null,
    details: (request.details ?? []).map((one) => JSON.stringify(one, null, 2)),
    uiLocales: request.uiLocales,
    formTargets: [formTarget(request.redirectUri)],
  }
}

async function documentedClient(
  { database, logos }: InteractionNeeds,
  { id, tenantId, metadataUrl }: PendingRequest['client'],
  context: MessageContext,
): Promise<DocumentedClient | null> {
  if (metadataUrl === null) return null
  const facts = await inTenant(database, tenantId, context, (tx) =>
    findObservedFacts(tx, tenantId, id),
  )
  if (facts === undefined) return null
  return {
    host: hostOfClientId(metadataUrl),
    claimedName: facts.clientName,
    firstSeen: facts.firstSeenAt.toISOString(),
    logo: facts.logoUri === null ? null : await logos.of(facts.logoUri),
  }
}

/** Stores the request under its handle, unless it is stored already. */
async function store(
  { database, clock, random }: InteractionNeeds,
  { client, request, requestedAt, pushedId, stored }: PendingRequest,
  handle: string,
  context: MessageContext,
): Promise<void> {
  if (stored !== null) return
  const { tenantId } = client
  const row = {
    tenantId,
    id: random.uuid(),
    handleSha256: sha256(handle),
    clientId: client.id,
    pushedId,
    request,
    createdAt: requestedAt,
    expiresAt: new Date(clock.now().getTime() + REQUEST_MS),
  }
  await inTenant(database, tenantId, context, (tx) => insertAuthorizationRequest(tx, row))
}
