/**
 * The sign-in of the console: an ordinary authorization code flow with PKCE at our own endpoints (RFC 6749 section 4.1,
 * RFC 7636, OpenID Connect Core section 3.1). The tokens stay in the service.
 */
import { createHash, createHmac } from 'node:crypto'
import { decodeJwt } from 'jose'
import {
  CONSOLE_CALLBACK_PATH,
  CONSOLE_CLIENT_ID,
  CONSOLE_SCOPES,
} from '../../../actors/domain/people/console-client.js'
import type {
  ConsoleSessionFound,
  ConsoleSessionsProtocol,
  ConsoleTokensIssued,
} from '../../../actors/identity/console-sessions/protocol.js'
import type { BrowserSessionsProtocol } from '../../../actors/identity/sign-in/sessions/protocol.js'
import type { TenantsProtocol } from '../../../actors/identity/users/tenants/protocol.js'
import type { ActorRef, AskOptions } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { BrowserReader } from '../../request/browser.js'
import type { AnyRouteRequest, Rendered } from '../../route.js'
import type { ConsoleApi } from './api.js'
import { isItem } from './declaration.js'

/** A token is renewed when it is valid for less than this. */
const RENEW_BEFORE_MS = 20_000
const FLOW_TOKEN_BYTES = 32
const RETURN_CHARS_MAX = 1024

type ConsoleSessionNeeds = {
  readonly api: ConsoleApi
  readonly sessions: ActorRef<ConsoleSessionsProtocol>
  /** Undefined if this process has no sign-in. */
  readonly browserSessions: ActorRef<BrowserSessionsProtocol> | undefined
  readonly tenants: ActorRef<TenantsProtocol>
  readonly browsers: BrowserReader
  readonly clock: Clock
  readonly random: Random
  readonly issuer: string
}

/** A signed-in user of the console. */
export type SignedIn = Omit<ConsoleSessionFound, 'tag'>

/** What an API asks for when it needs a fresh second factor (RFC 9470 section 3). */
export type StepUp = { readonly acrValues: string | null; readonly maxAgeSecs: string | null }

/** Takes the place of the secret in the cookie of a complete sign-in. No state is derived from it. */
const COMPLETED = 'complete'

type Flow = { readonly tenantId: string; readonly returnTo: string; readonly resumes: boolean }

export class ConsoleSignIn {
  private readonly needs: ConsoleSessionNeeds

  constructor(needs: ConsoleSessionNeeds) {
    this.needs = needs
  }

  /** The session of the browser with a valid access token, or null. */
  async read(request: AnyRouteRequest, asking: AskOptions): Promise<SignedIn | null> {
    const { sessions, clock } = this.needs
    const token = request.browser.consoleToken
    if (token === null) return null
    const read = await sessions.read({ token }, asking)
    if (read.tag === 'none') return null
    if (read.accessUntil.getTime() - clock.now().getTime() > RENEW_BEFORE_MS) return read
    return this.renew(request, read)
  }

  /** Ends a session whose tokens are no longer valid. */
  async end(session: SignedIn): Promise<void> {
    await this.needs.sessions.end({ session })
  }

  /**
   * Signs out: ends the sign-in session of this user in the browser, which would open the console again, then the
   * session of the console, and revokes its tokens. @returns the cookies that this deletes.
   */
  async signOut(request: AnyRouteRequest, asking: AskOptions): Promise<readonly string[]> {
    const { sessions, api, browsers } = this.needs
    const cookies = [
      browsers.consoleCookie('session', null),
      browsers.consoleCookie('tenant', null),
    ]
    const token = request.browser.consoleToken
    const read = token === null ? null : await sessions.read({ token }, asking)
    if (read === null || read.tag === 'none') return cookies
    if (await this.endSignIn(request, read, asking)) cookies.push(browsers.sessionCookie(null))
    await this.end(read)
    const { refreshToken } = read.tokens
    await api(request, formCall('/oauth/revoke', { token: refreshToken }))
    return cookies
  }

  /** Ends the sign-in session of the browser. False if it has none, or one of another tenant or user. */
  private async endSignIn(
    { browser }: AnyRouteRequest,
    { tenantId, subject }: SignedIn,
    asking: AskOptions,
  ): Promise<boolean> {
    const { browserSessions } = this.needs
    const read = await browserSessions?.read({ token: browser.sessionToken }, asking)
    if (browserSessions === undefined || read?.tag !== 'open') return false
    const { session } = read
    if (session.tenantId !== tenantId || session.sub !== subject) return false
    await browserSessions.end({ session, reason: 'logout' }, asking)
    return true
  }

  /** Begins a sign-in. The control plane needs a second factor. */
  async start(flow: Flow, asking: AskOptions): Promise<Rendered> {
    const found = await this.needs.tenants.resolve({ tenantId: flow.tenantId }, asking)
    const isControlPlane = found.tag === 'resolved' && found.tenant.controlPlane
    return this.begin(flow, isControlPlane ? { acrValues: 'aal2', maxAgeSecs: null } : undefined)
  }

  /** Redirects the browser to the authorization endpoint. */
  begin(flow: Flow, stepUp?: StepUp): Rendered {
    const { random, browsers, issuer } = this.needs
    const secret = random.token(FLOW_TOKEN_BYTES)
    const returnTo = flow.returnTo.slice(0, RETURN_CHARS_MAX)
    const kept = Buffer.from(JSON.stringify({ ...flow, returnTo })).toString('base64url')
    const parameters = new URLSearchParams({
      client_id: CONSOLE_CLIENT_ID,
      tenant_id: flow.tenantId,
      response_type: 'code',
      redirect_uri: `${issuer}${CONSOLE_CALLBACK_PATH}`,
      scope: CONSOLE_SCOPES.join(' '),
      state: derived(secret, 'state'),
      nonce: derived(secret, 'nonce'),
      code_challenge: createHash('sha256').update(derived(secret, 'verifier')).digest('base64url'),
      code_challenge_method: 'S256',
      ...(stepUp?.acrValues == null ? {} : { acr_values: stepUp.acrValues }),
      ...(stepUp?.maxAgeSecs == null ? {} : { max_age: stepUp.maxAgeSecs }),
    })
    return {
      ...redirect(`${issuer}/oauth/authorize?${parameters}`),
      cookies: [browsers.consoleCookie('flow', `${secret}.${kept}`)],
    }
  }

  /** True for the answer to a sign-in of this browser, with a code or an error. */
  isAnswer({ browser }: AnyRouteRequest, answer: ReadonlyMap<string, string>): boolean {
    const [secret = ''] = (browser.consoleFlow ?? '').split('.')
    if (secret === '' || secret === COMPLETED) return false
    // RFC 9700 section 4.7 (state), RFC 9207 section 2.4 (iss).
    return (
      answer.get('state') === derived(secret, 'state') && answer.get('iss') === this.needs.issuer
    )
  }

  /** Redeems the code of a callback. Null if the callback does not belong to a sign-in of this browser. */
  async complete(
    request: AnyRouteRequest,
    answer: ReadonlyMap<string, string>,
    asking: AskOptions,
  ): Promise<{
    readonly flow: Flow
    readonly cookies: readonly string[]
    readonly token: string
  } | null> {
    const { api, sessions, tenants, browsers, issuer } = this.needs
    const code = answer.get('code')
    if (code === undefined || !this.isAnswer(request, answer)) return null
    const [secret = '', kept = ''] = (request.browser.consoleFlow ?? '').split('.')
    const flow = flowOf(kept)
    if (flow === null) return null
    const answered = await api(
      request,
      formCall('/oauth/token', {
        grant_type: 'authorization_code',
        code,
        redirect_uri: `${issuer}${CONSOLE_CALLBACK_PATH}`,
        code_verifier: derived(secret, 'verifier'),
      }),
    )
    const issued = issuedBy(answered.status, answered.json)
    const claims = issued === null ? null : claimsOf(issued.idToken)
    if (issued === null || claims === null) return null
    const isOurs =
      claims['nonce'] === derived(secret, 'nonce') && claims['tenant_id'] === flow.tenantId
    if (!isOurs) return null
    const { accessToken, refreshToken, scopes, expiresInSecs } = issued
    const [person, tenant] = await Promise.all([
      api(request, { method: 'GET', path: '/userinfo', token: accessToken }),
      tenants.resolve({ tenantId: flow.tenantId }, asking),
    ])
    const tokens = {
      accessToken,
      refreshToken,
      person: textIn(person.json, 'name') ?? textIn(person.json, 'email') ?? '',
      tenantName: tenant.tag === 'resolved' ? tenant.tenant.name : '',
    }
    const subject = String(claims['sub'])
    const carried = await this.carried(request, flow, subject, asking)
    const opened = await sessions.open(
      { tenantId: flow.tenantId, subject, tokens, scopes, expiresInSecs },
      asking,
    )
    if (carried !== null) {
      const read = await sessions.read({ token: opened.token }, asking)
      if (read.tag === 'found')
        await sessions.keepAction({ session: read, action: carried }, asking)
    }
    return {
      flow,
      token: opened.token,
      cookies: [
        browsers.consoleCookie('session', opened.token),
        browsers.consoleCookie('tenant', flow.tenantId),
        // Only a resumed action answers the callback with a page, which the user may load again.
        browsers.consoleCookie('flow', flow.resumes ? `${COMPLETED}.${kept}` : null),
      ],
    }
  }

  /** The action that waited in the session before a step-up of the same user. That session ends. */
  private async carried(request: AnyRouteRequest, flow: Flow, subject: string, asking: AskOptions) {
    const { sessions } = this.needs
    const token = request.browser.consoleToken
    const before = token === null ? null : await sessions.read({ token }, asking)
    if (before === null || before.tag === 'none') return null
    const isSame = before.tenantId === flow.tenantId && before.subject === subject
    const waiting =
      isSame && flow.resumes ? await sessions.takeAction({ session: before }, asking) : null
    await this.end(before)
    return waiting?.tag === 'action' ? waiting.action : null
  }

  private async renew(request: AnyRouteRequest, session: SignedIn): Promise<SignedIn | null> {
    const { api, sessions, clock } = this.needs
    const { refreshToken } = session.tokens
    const answered = await api(
      request,
      formCall('/oauth/token', { grant_type: 'refresh_token', refresh_token: refreshToken }),
    )
    const issued = issuedBy(answered.status, answered.json)
    if (issued === null) {
      if (answered.status < 500 && answered.status !== 429) await this.end(session)
      return null
    }
    const { scopes, expiresInSecs } = issued
    const tokens = {
      ...session.tokens,
      accessToken: issued.accessToken,
      refreshToken: issued.refreshToken,
    }
    await sessions.renew({ session, tokens, scopes, expiresInSecs })
    const accessUntil = new Date(clock.now().getTime() + expiresInSecs * 1000)
    return { ...session, tokens, scopes, accessUntil }
  }
}

export function redirect(location: string): Extract<Rendered, { form: 'body' }> {
  return { form: 'body', status: 303, contentType: null, body: null, headers: { location } }
}

/** State, nonce and verifier of a sign-in, from the secret in its cookie. Nothing is stored. */
function derived(secret: string, what: 'state' | 'nonce' | 'verifier'): string {
  return createHmac('sha256', secret).update(`svc-console-${what}-v1`).digest('base64url')
}

/** The page of the last complete sign-in of the browser, or null. */
export function completedAt({ browser }: AnyRouteRequest): string | null {
  const [secret = '', kept = ''] = (browser.consoleFlow ?? '').split('.')
  return secret === COMPLETED ? (flowOf(kept)?.returnTo ?? null) : null
}

function flowOf(kept: string): Flow | null {
  try {
    const flow: unknown = JSON.parse(Buffer.from(kept, 'base64url').toString('utf8'))
    if (!isItem(flow)) return null
    const { tenantId, returnTo, resumes } = flow
    return {
      tenantId: String(tenantId),
      returnTo: ownPage(String(returnTo)),
      resumes: resumes === true,
    }
  } catch {
    return null
  }
}

/** A page of the console. Anything else becomes its start page. */
export function ownPage(path: string): string {
  return /^\/console(?:[/?][\x21-\x7e]*)?$/.test(path) && !path.includes('\\') ? path : '/console'
}

function formCall(path: string, fields: Readonly<Record<string, string>>) {
  const body = new URLSearchParams({ ...fields, client_id: CONSOLE_CLIENT_ID }).toString()
  return { method: 'POST', path, body, contentType: 'application/x-www-form-urlencoded' }
}

type Issued = Pick<ConsoleTokensIssued, 'scopes' | 'expiresInSecs'> & {
  readonly accessToken: string
  readonly refreshToken: string
  readonly idToken: string
}

function issuedBy(status: number, json: unknown): Issued | null {
  if (status !== 200 || !isItem(json)) return null
  const { access_token, refresh_token, id_token, scope, expires_in } = json
  return {
    accessToken: String(access_token),
    refreshToken: String(refresh_token),
    idToken: String(id_token),
    scopes: String(scope).split(' '),
    expiresInSecs: Number(expires_in),
  }
}

/**
 * The claims of an ID token. It comes from our own token endpoint and not through the browser, so that its signature
 * need not be verified (OpenID Connect Core section 3.1.3.7).
 */
function claimsOf(idToken: string): Readonly<Record<string, unknown>> | null {
  try {
    return decodeJwt(idToken)
  } catch {
    return null
  }
}

function textIn(json: unknown, member: string): string | null {
  const value = isItem(json) ? json[member] : undefined
  return typeof value === 'string' && value !== '' ? value : null
}
