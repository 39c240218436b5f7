/** Browser sessions in the pipeline: cookies, sessions, and protection against cross-site requests. */
import type { BrowserSessionsProtocol } from '../../actors/identity/sign-in/sessions/protocol.js'
import type { ActorRef } from '../../runtime/kernel/actor.js'
import { type BrowserReader, type FormBound, isOwnCall, isOwnForm } from './browser.js'
import type { Problem } from '../response/problems.js'
import type { Security } from '../route.js'
import type { RequestContext } from './request-context.js'

type BrowserSessionGuardNeeds = {
  readonly browsers: BrowserReader
  /** Undefined if this process has no sign-in: then no request has a session. */
  readonly sessions: ActorRef<BrowserSessionsProtocol> | undefined
}

const FOREIGN_FORM: Problem = {
  name: 'forbidden',
  reason: 'form_foreign',
  detail:
    'The form is not from a page of this service in this browser, or the page is too old. ' +
    'Open the page again and repeat.',
}

/** For browsers that refuse cookies: opening the page again would not help. */
const FORM_WITHOUT_COOKIE: Problem = {
  name: 'forbidden',
  reason: 'cookie_missing',
  detail: 'The form was sent without the cookie of its page.',
  pageWords: 'error.cookies',
}

export const FOREIGN_CALL: Problem = {
  name: 'forbidden',
  reason: 'origin_foreign',
  detail:
    'With a session, only pages of this service may call this operation: the Origin header must match. ' +
    'Programs need an access token.',
}

/** For scripts of pages, whose request would follow a redirect to a page that is not theirs. */
export const noSession = (location: string): Problem => ({
  name: 'unauthorized',
  detail: 'The session has ended. Sign in at `location`.',
  reason: 'session_missing',
  members: { location },
  headers: { 'www-authenticate': 'Cookie realm="svc"' },
})

/** The one form of the console without a page. */
export const CONSOLE_SIGN_OUT = '/console/sign-out'

export class BrowserSessionGuard {
  private readonly needs: BrowserSessionGuardNeeds

  constructor(needs: BrowserSessionGuardNeeds) {
    this.needs = needs
  }

  /** Reads the cookies of a page request. A new browser gets a browser cookie. */
  loadBrowser(context: RequestContext, security: Security): void {
    const bound = boundOf(security)
    if (bound === null) return
    const { browser, setCookie } = this.needs.browsers.read(context.exchange, bound)
    context.browser = browser
    if (setCookie !== null) context.cookies = [setCookie]
  }

  /** Loads the session of a page. @returns null, or the sign-in URL if there is no session. */
  async openSession(context: RequestContext): Promise<string | null> {
    const token = context.browser.sessionToken
    const read = await this.needs.sessions?.read({ token }, context)
    if (read?.tag === 'open') {
      context.session = read.session
      return null
    }
    const { method, path, query } = context.exchange
    // After sign-in a form is not submitted again: the user starts over on the account page.
    const here = method === 'GET' ? (query === '' ? path : `${path}?${query}`) : '/auth/account'
    const returnTo = `return_to=${encodeURIComponent(here)}`
    // After the end of a session the user signs in to the same tenant again.
    const tenantId = read?.tenantId ?? null
    return `/auth/login?${tenantId === null ? returnTo : `tenant_id=${tenantId}&${returnTo}`}`
  }

  /** Loads the session of a call from a page. Only `open` authenticates the call. */
  async openCall(context: RequestContext): Promise<'open' | 'none' | 'foreign'> {
    const { browser } = this.needs.browsers.read(context.exchange, 'session')
    if (browser.sessionToken === null) return 'none'
    if (!isOwnCall(context.exchange)) return 'foreign'
    const read = await this.needs.sessions?.read({ token: browser.sessionToken }, context)
    if (read?.tag !== 'open') return 'none'
    context.session = read.session
    return 'open'
  }

  /** Checks the CSRF token of a page's form. @returns null if it is valid, and for other routes. */
  refuseForm(
    { exchange, browser }: RequestContext,
    security: Security,
    body: unknown,
  ): Problem | null {
    const bound = boundOf(security)
    if (bound === null) return null
    if (security.scheme === 'browser' && security.forms === 'foreign') return null
    if (isOwnForm(exchange, body, browser)) return null
    if (browser.isNew) return FORM_WITHOUT_COOKIE
    return bound === 'console' ? { ...FOREIGN_FORM, pageLink: again(exchange.path) } : FOREIGN_FORM
  }
}

/** The session to which the forms of a route are bound. Null if it is no page. */
function boundOf(security: Security): FormBound | null {
  if (security.scheme === 'session') return 'session'
  if (security.scheme !== 'browser') return null
  return security.forms === 'console' ? 'console' : 'browser'
}

/** The page of a form, in the session of the console that is open now. */
const again = (path: string) =>
  ({ path: path === CONSOLE_SIGN_OUT ? '/console' : path, key: 'console.again' }) as const
