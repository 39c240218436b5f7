/** The routes of the console. All pages below /console are served by a few generic routes. */
import { z } from 'zod'
import type { ConsoleAction as KeptAction } from '../../../actors/identity/console-sessions/protocol.js'
import type { ConsoleSessionsProtocol } from '../../../actors/identity/console-sessions/protocol.js'
import { UPLOAD_BYTES_MAX } from '../../../actors/identity/tenant-assets/protocol.js'
import type { BrowserSessionsProtocol } from '../../../actors/identity/sign-in/sessions/protocol.js'
import type { TenantsProtocol } from '../../../actors/identity/users/tenants/protocol.js'
import type { ActorRef, AskOptions } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { renderPage } from '../../pages/platform/render.js'
import type { BrowserReader } from '../../request/browser.js'
import { CONSOLE_SIGN_OUT } from '../../request/browser-session-guard.js'
import { pagePolicy } from '../../response/replies.js'
import {
  type AnyRouteRequest,
  type BodyRule,
  formFields,
  type FormFields,
  ownRoute,
  queryFields,
  type Rendered,
  type Route,
  type UploadedForm,
  uploadForm,
} from '../../route.js'
import type { ConsoleApi } from './api.js'
import { ConsolePeople } from './people.js'
import { completedAt, ConsoleSignIn, ownPage, redirect, type SignedIn } from './session.js'
import type { Place, Site } from './site.js'
import { consoleStyleRoute } from './style.js'
import { FEATURES_PATH, isInterrupted, type Outcome, type Visit } from './visit.js'

type ConsoleNeeds = {
  readonly api: ConsoleApi
  readonly site: Site
  readonly sessions: ActorRef<ConsoleSessionsProtocol>
  readonly browserSessions: ActorRef<BrowserSessionsProtocol> | undefined
  readonly tenants: ActorRef<TenantsProtocol>
  readonly browsers: BrowserReader
  readonly clock: Clock
  readonly random: Random
  readonly issuer: string
}

/** A logo is the largest value of a form. */
const FORM_BYTES_MAX = 512 * 1024
const WORKSPACE_CHARS_MAX = 320

const shared = {
  tags: ['Hosted pages'],
  exposure: 'internal',
  security: { scheme: 'browser', forms: 'console' },
  errors: 'page',
  responses: [
    { status: 303, contentType: null, schema: null },
    // A page shows the answer of the API and has its status.
    ...[200, 400, 402, 403, 404, 409, 410, 413, 422, 429, 500, 502, 503, 504].map((status) => ({
      status,
      contentType: 'text/html',
      schema: null,
    })),
  ],
} as const

/** Pages ignore parameters that they do not know. */
const Query = queryFields(z.looseObject({}))
const Form = formFields(z.looseObject({ csrf_token: z.string().max(128) }), {
  maxBytes: FORM_BYTES_MAX,
})
const Segment = z.string().max(512)

/** The action that uploads a file. */
const UPLOAD_PATH = '/console/assets/{id}/do/upload'
/** Its preview keeps the file in a form, where a character may take three bytes. */
const IMPORT_PATH = '/console/people/do/import'
const UPLOADS: Readonly<Record<string, BodyRule<UploadedForm>>> = {
  [UPLOAD_PATH]: uploadForm({ maxBytes: UPLOAD_BYTES_MAX }),
  [IMPORT_PATH]: uploadForm({ maxBytes: Math.floor(FORM_BYTES_MAX / 3) - 1_024 }),
}

/** The pages by their path, with the operation ids of reading and of sending them. */
const PLACES = [
  ['/console/{resource}', 'showConsoleList', null],
  [UPLOAD_PATH, 'showConsoleUpload', 'sendConsoleUpload'],
  [IMPORT_PATH, 'showConsoleImport', 'sendConsoleImport'],
  ['/console/{resource}/do/{action}', 'showConsoleListAction', 'sendConsoleListAction'],
  ['/console/{resource}/{id}', 'showConsoleItem', null],
  ['/console/{resource}/{id}/do/{action}', 'showConsoleItemAction', 'sendConsoleItemAction'],
  ['/console/{resource}/{id}/{child}', 'showConsoleChildList', null],
  [
    '/console/{resource}/{id}/{child}/do/{action}',
    'showConsoleChildListAction',
    'sendConsoleChildListAction',
  ],
  ['/console/{resource}/{id}/{child}/{child_id}', 'showConsoleChild', null],
  [
    '/console/{resource}/{id}/{child}/{child_id}/do/{action}',
    'showConsoleChildAction',
    'sendConsoleChildAction',
  ],
] as const

/** The needs, with the sign-in and the pages that are made of them. */
type Console = ConsoleNeeds & { readonly signIn: ConsoleSignIn; readonly pages: ConsolePeople }
/** Finds an active tenant. */
type Finding = (at: Console, text: string, asking: AskOptions) => Promise<string | null>
type Answer = (at: Console, request: AnyRouteRequest, asking: AskOptions) => Promise<Rendered>

export function consoleRoutes(needs: ConsoleNeeds): readonly Route[] {
  const at = { ...needs, signIn: new ConsoleSignIn(needs), pages: new ConsolePeople(needs) }
  const answered = (answer: Answer) => (request: AnyRouteRequest, asking: AskOptions) =>
    answer(at, request, asking)
  return [
    consoleStyleRoute,
    ownRoute({
      ...shared,
      method: 'GET',
      path: '/console',
      operationId: 'showConsole',
      summary: 'The console: overview of a tenant',
      query: Query,
      answer: answered(showConsole),
    }),
    ownRoute({
      ...shared,
      method: 'GET',
      path: '/console/sign-in',
      operationId: 'showConsoleSignIn',
      summary: 'The page that asks for the tenant of the console, or the sign-in to a known one',
      query: Query,
      answer: answered(showConsoleSignIn),
    }),
    ownRoute({
      ...shared,
      method: 'POST',
      path: '/console/sign-in',
      operationId: 'beginConsoleSignIn',
      summary: 'Sign in to the console of a tenant',
      throttle: [{ policy: 'authorize', by: 'address' }],
      body: Form,
      answer: answered(beginConsoleSignIn),
    }),
    ownRoute({
      ...shared,
      method: 'GET',
      path: '/console/callback',
      operationId: 'completeConsoleSignIn',
      summary: 'The redirect URI of the console (RFC 6749 section 4.1.2)',
      query: Query,
      answer: answered(completeConsoleSignIn),
    }),
    ownRoute({
      ...shared,
      method: 'POST',
      path: CONSOLE_SIGN_OUT,
      operationId: 'endConsoleSession',
      summary: 'Sign out of the console: its tokens are revoked and the sign-in session ends',
      body: Form,
      answer: answered(endConsoleSession),
    }),
    ...PLACES.flatMap(([path, reads, sends]) => placeRoutes(at, path, reads, sends)),
  ]
}

function placeRoutes(at: Console, path: string, reads: string, sends: string | null) {
  const { pages } = at
  const names = [...path.matchAll(/\{([a-z_]+)\}/g)].map(([, name]) => name!)
  const params = z.object(Object.fromEntries(names.map((name) => [name, Segment])))
  const one = { ...shared, path, params, query: Query }
  /** Answers with the page of the place, which is null if the user has none. */
  const placed =
    (
      answer: (visit: Visit, place: Place, request: AnyRouteRequest) => Promise<Outcome> | Outcome,
    ) =>
    (request: AnyRouteRequest, asking: AskOptions) => {
      const segments = segmentsIn(path, request.params)
      return withSession(at, request, asking, pathOf(segments), (session) => {
        const visit = visitOf(request, session)
        if (pathOf(segments) === FEATURES_PATH) return pages.features(visit)
        const place = at.site.place(segments, session.scopes)
        return place === null ? pages.missing(visit, null, null) : answer(visit, place, request)
      })
    }
  const show = ownRoute({
    ...one,
    method: 'GET',
    operationId: reads,
    summary: 'A page of the console',
    // The exports of the audit chain and of people.
    responses: [
      ...shared.responses,
      { status: 200, contentType: 'application/x-ndjson', schema: null },
      { status: 200, contentType: 'text/csv', schema: null },
    ],
    answer: placed((visit, place, { query }) => pages.show(visit, place, searchOf(query))),
  })
  if (sends === null) return [show]
  const upload = UPLOADS[path]
  const send = ownRoute({
    ...one,
    method: 'POST',
    operationId: sends,
    summary: 'An action of the console: one call of the API',
    body: upload ?? Form,
    answer: placed((visit, place, { body }) => {
      if (path === IMPORT_PATH) return pages.previewImport(visit, place, body as UploadedForm)
      if (upload !== undefined) return pages.upload(visit, place, body as UploadedForm)
      const fields = body as FormFields
      if (place.action?.name === 'bulk') return pages.bulk(visit, place, fields)
      if (place.action?.name === 'apply') return pages.applyImport(visit, place, fields)
      return pages.act(visit, place, fields)
    }),
  })
  return [show, send]
}

/** A visit in the session of the browser. */
const visitOf = (request: AnyRouteRequest, session: SignedIn): Visit => ({
  request,
  session,
  csrf: request.browser.csrfToken,
})

const searchOf = (query: unknown) => new URLSearchParams(query as [string, string][])

const showConsole: Answer = async (at, request, asking) => {
  const query = searchOf(request.query)
  const named = query.get('tenant_id') ?? query.get('tenant_slug')
  return named === null
    ? withSession(at, request, asking, '/console', (session) =>
        at.pages.overview(visitOf(request, session), query),
      )
    : ofTenant(at, request, asking, named, query)
}

const showConsoleSignIn: Answer = async (at, request, asking) => {
  const query = searchOf(request.query)
  const elsewhere = await toIssuer(at, request, '/console', asking)
  if (elsewhere !== null) return elsewhere
  const returnTo = ownPage(query.get('return_to') ?? '/console')
  const known = query.get('tenant_id') ?? request.browser.consoleTenant
  let tenantId: string | null = null
  if (!query.has('switch'))
    tenantId =
      known === null ? await ofHost(at, request.host, asking) : await tenantOf(at, known, asking)
  if (tenantId === null) return askPage(request, returnTo)
  return at.signIn.start({ tenantId, returnTo, resumes: false }, asking)
}

const beginConsoleSignIn: Answer = async (at, request, asking) => {
  const sent = new Map(request.body as FormFields)
  const returnTo = ownPage(sent.get('return_to') ?? '/console')
  const workspace = (sent.get('workspace') ?? '').trim().slice(0, WORKSPACE_CHARS_MAX)
  const isEmail = workspace.includes('@')
  const tenantId = await (isEmail ? ofEmail : tenantOf)(at, workspace, asking)
  const fault = isEmail ? 'console.signin.domain' : 'console.signin.unknown'
  if (tenantId === null) return askPage(request, returnTo, workspace, fault)
  return at.signIn.start({ tenantId, returnTo, resumes: false }, asking)
}

const completeConsoleSignIn: Answer = async (at, request, asking) => {
  const answer = new Map(request.query as FormFields)
  const error = answer.get('error')
  // Anybody can write a link to this page: only an answer to this browser is shown.
  if (error !== undefined && at.signIn.isAnswer(request, answer))
    return failedPage(request, error, answer.get('error_description'))
  const done = await at.signIn.complete(request, answer, asking)
  if (done === null) return (await reloaded(at, request, asking)) ?? failedPage(request)
  const { flow, cookies, token } = done
  const read = flow.resumes ? await at.sessions.read({ token }, asking) : null
  const rendered =
    read?.tag === 'found'
      ? await resumed(
          at,
          { request, session: read, csrf: request.browser.csrfOfConsole(token) },
          flow.returnTo,
          asking,
        )
      : redirect(flow.returnTo)
  return rendered.form === 'body' ? { ...rendered, cookies } : rendered
}

const endConsoleSession: Answer = async (at, request, asking) => {
  const cookies = await at.signIn.signOut(request, asking)
  return { ...redirect('/console/sign-in?switch=1'), cookies }
}

/**
 * The redirect of a request to another host of the service, such as a tenant's host: the cookies of the console belong
 * to the issuer's host. Null at the issuer.
 */
async function toIssuer(
  at: Console,
  { host }: AnyRouteRequest,
  path: string,
  asking: AskOptions,
): Promise<Rendered | null> {
  const { issuer } = at
  if (host === new URL(issuer).host) return null
  const tenantId = await ofHost(at, host, asking)
  return redirect(`${issuer}${tenantId === null ? path : `/console?tenant_id=${tenantId}`}`)
}

const toSignIn = (returnTo: string, tenantId: string | null) => {
  const query = new URLSearchParams({
    return_to: returnTo,
    ...(tenantId === null ? {} : { tenant_id: tenantId }),
  })
  return redirect(`/console/sign-in?${query.toString()}`)
}

/** Answers with a page for a signed-in user. Other users sign in first. */
async function withSession(
  at: Console,
  request: AnyRouteRequest,
  asking: AskOptions,
  returnTo: string,
  answer: (session: SignedIn) => Promise<Outcome> | Outcome,
): Promise<Rendered> {
  const elsewhere = await toIssuer(at, request, returnTo, asking)
  if (elsewhere !== null) return elsewhere
  const session = await at.signIn.read(request, asking)
  if (session === null) return toSignIn(returnTo, null)
  return settled(at, await answer(session), session, asking, returnTo)
}

async function settled(
  at: Console,
  outcome: Outcome,
  session: SignedIn,
  asking: AskOptions,
  returnTo: string,
): Promise<Rendered> {
  if (!isInterrupted(outcome)) return outcome
  const { tenantId } = session
  if (outcome.tag === 'over') {
    await at.signIn.end(session)
    return toSignIn(returnTo, tenantId)
  }
  const { call, page, stepUp } = outcome
  // An upload is not kept: the user chooses the file again.
  if (call === null || call.body instanceof Uint8Array)
    return at.signIn.begin({ tenantId, returnTo: page, resumes: false }, stepUp)
  const action: KeptAction = {
    method: call.method,
    path: call.path,
    body: call.body ?? null,
    idempotencyKey: call.idempotencyKey ?? '',
    page,
  }
  await at.sessions.keepAction({ session, action }, asking)
  return at.signIn.begin({ tenantId, returnTo: page, resumes: true }, stepUp)
}

/** The action that waited for a fresh second factor, now with the new token. */
async function resumed(
  at: Console,
  visit: Visit,
  returnTo: string,
  asking: AskOptions,
): Promise<Rendered> {
  const { session } = visit
  const taken = await at.sessions.takeAction({ session }, asking)
  if (taken.tag === 'no_action') return redirect(returnTo)
  const { method, path, body, idempotencyKey, page } = taken.action
  const place = at.site.place(segmentsOf(page), session.scopes)
  if (place?.action == null) return redirect('/console')
  const call = { method, path, body, ...(idempotencyKey === '' ? {} : { idempotencyKey }) }
  const outcome = await at.pages.perform(visit, place, call, { page })
  // The fresh sign-in was not enough: the user decides again, and nothing is repeated.
  if (isInterrupted(outcome)) return redirect(page)
  return outcome
}

/** The overview of a named tenant. A session of another tenant does not count. */
async function ofTenant(
  at: Console,
  request: AnyRouteRequest,
  asking: AskOptions,
  named: string,
  query: URLSearchParams,
): Promise<Rendered> {
  const here = `/console?tenant_id=${encodeURIComponent(named)}`
  const elsewhere = await toIssuer(at, request, here, asking)
  if (elsewhere !== null) return elsewhere
  const session = await at.signIn.read(request, asking)
  if (session === null || session.tenantId !== named.toLowerCase()) {
    const tenantId = await tenantOf(at, named, asking)
    if (tenantId === null) return askPage(request, '/console', named, 'console.signin.unknown')
    if (session?.tenantId !== tenantId)
      return at.signIn.start({ tenantId, returnTo: '/console', resumes: false }, asking)
  }
  const outcome = await at.pages.overview(visitOf(request, session), query)
  return settled(at, outcome, session, asking, '/console')
}

/** The active tenant with this id or slug. */
const tenantOf: Finding = async ({ tenants }, text, asking) => {
  const isId = /^[0-9a-f-]{36}$/i.test(text)
  const selector = isId ? { tenantId: text.toLowerCase() } : { tenantSlug: text.toLowerCase() }
  const found = await tenants.resolve(selector, asking)
  return found.tag === 'resolved' && found.tenant.status === 'active' ? found.tenant.id : null
}

function askPage(
  { browser }: AnyRouteRequest,
  returnTo: string,
  workspace = '',
  fault?: 'console.signin.unknown' | 'console.signin.domain',
): Rendered {
  const html = renderPage(
    'console-sign-in',
    {
      titleKey: 'console.signin.title',
      branding: null,
      acceptLanguage: browser.languages,
      ...(fault === undefined ? {} : { error: { key: fault, field: 'workspace' } }),
    },
    { csrf: browser.csrfToken, returnTo, workspace },
  )
  return pageOf(200, html)
}

/** The tenant of the host, or the only tenant of the deployment. */
const ofHost: Finding = async ({ tenants }, host, asking) => {
  const found = await tenants.resolve({ host }, asking)
  const isNamed = found.tag === 'resolved' && (found.by === 'host' || found.by === 'default')
  return isNamed && found.tenant.status === 'active' ? found.tenant.id : null
}

const ofEmail: Finding = async ({ sessions }, email, asking) => {
  const found = await sessions.tenantOfEmail({ email }, asking)
  return found.tag === 'tenant' ? found.tenantId : null
}

/** The page of a callback was loaded again. Its sign-in is complete, so the user goes to the page of the action. */
async function reloaded(
  { signIn }: Console,
  request: AnyRouteRequest,
  asking: AskOptions,
): Promise<Rendered | null> {
  const returnTo = completedAt(request)
  if (returnTo === null || (await signIn.read(request, asking)) === null) return null
  return redirect(returnTo.replace(/\/do\/[^/]*$/, ''))
}

function failedPage({ browser }: AnyRouteRequest, error?: string, detail?: string): Rendered {
  const html = renderPage(
    'console-failed',
    { titleKey: 'console.failed.title', branding: null, acceptLanguage: browser.languages },
    {
      key: error === 'access_denied' ? 'console.failed.denied' : 'console.failed.lead',
      detail: detail?.slice(0, 256) ?? null,
    },
  )
  return pageOf(400, html)
}

function pageOf(status: number, html: string): Rendered {
  return {
    form: 'body',
    status,
    contentType: 'text/html; charset=utf-8',
    body: html,
    policy: pagePolicy([]),
  }
}

/** The segments of a path below /console, from its decoded parameters. */
function segmentsIn(path: string, params: unknown): readonly string[] {
  const values = params as Readonly<Record<string, string>>
  return path
    .split('/')
    .slice(2)
    .map((segment) => (segment.startsWith('{') ? (values[segment.slice(1, -1)] ?? '') : segment))
}

function segmentsOf(path: string): readonly string[] {
  return path.split('/').slice(2).map(decodeURIComponent)
}

function pathOf(segments: readonly string[]): string {
  return `/console/${segments.map(encodeURIComponent).join('/')}`
}
