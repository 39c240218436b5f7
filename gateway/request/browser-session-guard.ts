/** What pages need of the pipeline besides what every route does: cookies, session, own forms. */
import type { BrowserSessionsProtocol } from '../../actors/identity/sessions/protocol.js'
import type { ActorRef } from '../../runtime/kernel/actor.js'
import { type BrowserReader, isOwnCall, isOwnForm } from './browser.js'
import type { Problem } from '../response/problems.js'
import type { Security } from '../route.js'
import type { RequestContext } from './request-context.js'

export type BrowserSessionGuardNeeds = {
  readonly browsers: BrowserReader
  /** Undefined where no people sign in: then nobody is signed in. */
  readonly sessions: ActorRef<BrowserSessionsProtocol> | undefined
}

const FOREIGN_FORM: Problem = {
  name: 'forbidden',
  detail:
    'The form did not come from a page that this browser was given, or the page is too old. ' +
    'Open the page again and repeat.',
}

/** Whoever lets no cookies be kept would open the page again for ever. */
const FORM_WITHOUT_COOKIE: Problem = {
  name: 'forbidden',
  detail: 'The form came without the cookie that this browser was given with its page.',
  pageWords: 'error.cookies',
}

export const FOREIGN_CALL: Problem = {
  name: 'forbidden',
  detail:
    'With a session, this operation is for pages of this service: the Origin header must name it. ' +
    'Programs call it with an access token.',
}

export class BrowserSessionGuard {
  private readonly needs: BrowserSessionGuardNeeds

  constructor(needs: BrowserSessionGuardNeeds) {
    this.needs = needs
  }

  /** Reads the cookies of a browser that wants a page; a new one gets a secret of its own. */
  loadBrowser(context: RequestContext, { scheme }: Security): void {
    if (scheme !== 'browser' && scheme !== 'session') return
    const { browser, setCookie } = this.needs.browsers.read(context.exchange, scheme === 'session')
    context.browser = browser
    if (setCookie !== null) context.cookies = [setCookie]
  }

  /** Finds who is signed in. Null, or where the browser is to be sent when nobody is. */
  async openSession(context: RequestContext): Promise<string | null> {
    const token = context.browser.sessionToken
    const read = await this.needs.sessions?.ask('read', { token }, context)
    if (read?.tag === 'open') {
      context.session = read.session
      return null
    }
    const { method, path, query } = context.exchange
    // What a form wanted is not repeated by itself after the sign-in: it starts over.
    const here = method === 'GET' ? (query === '' ? path : `${path}?${query}`) : '/auth/account'
    const back = `return_to=${encodeURIComponent(here)}`
    // Whoever was signed in signs in again where they were, not where the address alone leads.
    const tenantId = read?.tenantId ?? null
    return `/auth/login?${tenantId === null ? back : `tenant_id=${tenantId}&${back}`}`
  }

  /** Finds who is signed in, for a call of a page. Anything but `open` is not. */
  async openCall(context: RequestContext): Promise<'open' | 'none' | 'foreign'> {
    const { browser } = this.needs.browsers.read(context.exchange, true)
    if (browser.sessionToken === null) return 'none'
    if (!isOwnCall(context.exchange)) return 'foreign'
    const read = await this.needs.sessions?.ask('read', { token: browser.sessionToken }, context)
    if (read?.tag !== 'open') return 'none'
    context.session = read.session
    return 'open'
  }

  /** Null where the form of a page is one that we gave to this browser, and for all that are no pages. */
  refuseForm(
    { exchange, browser }: RequestContext,
    security: Security,
    body: unknown,
  ): Problem | null {
    if (security.scheme !== 'browser' && security.scheme !== 'session') return null
    if (security.scheme === 'browser' && security.forms === 'foreign') return null
    if (isOwnForm(exchange, body, browser)) return null
    return browser.isNew ? FORM_WITHOUT_COOKIE : FOREIGN_FORM
  }
}
