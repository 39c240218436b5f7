/**
 * The cookies of a browser, and CSRF protection.
 *
 * `svc_session` identifies the session and changes with each sign-in. `svc_browser` is a secret of the browser,
 * set with its first page. The `csrf_token` of a form is a MAC with that secret, over the token of the session or of
 * the console's session if the page has one, so no token is stored. With TLS both cookies have the `__Host-` prefix, so that a sub-domain
 * cannot set them (RFC 6265bis section 4.1.3.2).
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { type Cookies, parseCookie, type SerializeOptions, stringifySetCookie } from 'cookie'
import { type I18nSettings, I18N_DEFAULTS } from '../../actors/domain/i18n/settings.js'
import { isUuid } from '../../actors/domain/ids.js'
import type { Random } from '../../runtime/kernel/random.js'
import type { HttpExchange } from '../http-exchange.js'
import type { BrowserLanguages } from '../pages/platform/language.js'
import { isHostOf } from './hosts.js'

/** The browser of a request, for pages and their actors. */
export type Browser = {
  /** The session cookie, or null if it is missing or malformed. */
  readonly sessionToken: string | null
  /** The cookies of the console: its session, and the state of a sign-in. Null if missing or malformed. */
  readonly consoleToken: string | null
  readonly consoleFlow: string | null
  /** The tenant that the console remembers, or null. */
  readonly consoleTenant: string | null
  /** User-Agent as sent, cut to 256 characters. */
  readonly userAgent: string
  /** Accept-Language as sent, and `[i18n]`. */
  readonly languages: BrowserLanguages
  /** Identifier of the browser, derived from its cookie. */
  readonly id: string
  /** The value of `csrf_token` in the forms of this answer. */
  readonly csrfToken: string
  /** The same for the console, if this answer begins a session of the console: `token` is its cookie. */
  readonly csrfOfConsole: (token: string) => string
  /** True if it accepts HTML. */
  readonly wantsPage: boolean
  /** True if a page of the service led here (Sec-Fetch-Site: same-origin, W3C Fetch Metadata section 2.4). */
  readonly fromOwnPage: boolean
  /** It is a form of another site. A browser adds no cookie to it (SameSite=Lax). */
  readonly isForeignForm: boolean
  /** True if it sent no browser cookie: it is new, or refuses cookies. */
  readonly isNew: boolean
}

/** For routes without pages. */
export const NO_BROWSER: Browser = Object.freeze({
  sessionToken: null,
  consoleToken: null,
  consoleFlow: null,
  consoleTenant: null,
  userAgent: '',
  languages: { header: '', i18n: I18N_DEFAULTS },
  id: '',
  csrfToken: '',
  csrfOfConsole: () => '',
  wantsPage: false,
  fromOwnPage: false,
  isForeignForm: false,
  isNew: true,
})

/** Session and browser tokens: 32 random bytes. */
const BROWSER_TOKEN_BYTES = 32
const TOKEN = /^[A-Za-z0-9_-]{43}$/
/** 180 days: as long as a browser stays known to an account. */
const BROWSER_KEPT_SECS = 15_552_000
const USER_AGENT_LENGTH_MAX = 256
const LANGUAGES_LENGTH_MAX = 512

type CookieSettings = {
  /** True if the issuer is https: cookies are Secure then and have the `__Host-` prefix. */
  readonly secure: boolean
  /** Max-Age of the session cookie. Null: it ends with the browser session. */
  readonly keptSecs: number | null
}

export interface BrowserReader {
  /**
   * Reads the cookies. `bound` is the session to which the CSRF token is bound. `setCookie` is the Set-Cookie value
   * for a new browser, otherwise null.
   */
  read(
    exchange: Pick<HttpExchange, 'headers' | 'method'>,
    bound: FormBound,
  ): { readonly browser: Browser; readonly setCookie: string | null }
  /** The Set-Cookie value that sets or (null) deletes the session cookie. */
  sessionCookie(token: string | null): string
  /** The Set-Cookie value that sets or (null) deletes a cookie of the console. */
  consoleCookie(name: ConsoleCookie, value: string | null): string
}

/** `browser`: to no session. */
export type FormBound = 'browser' | 'session' | 'console'

/** `flow` is the state of a sign-in, `tenant` what the console remembers. */
type ConsoleCookie = 'session' | 'flow' | 'tenant'

const CONSOLE_COOKIES: Readonly<Record<ConsoleCookie, { name: string; maxAge?: number }>> = {
  session: { name: 'svc_console' },
  // As long as a sign-in may take.
  flow: { name: 'svc_console_flow', maxAge: 75 * 60 },
  tenant: { name: 'svc_console_tenant', maxAge: 365 * 86_400 },
}

export function browserReader(
  { secure, keptSecs }: CookieSettings,
  i18n: I18nSettings,
  random: Random,
): BrowserReader {
  const prefix = secure ? '__Host-' : ''
  const setCookie = (name: string, value: string, options: SerializeOptions = {}) =>
    stringifySetCookie(`${prefix}${name}`, value, {
      path: '/',
      httpOnly: true,
      sameSite: 'lax',
      secure,
      ...options,
    })
  return {
    read({ headers, method }, bound) {
      const site = headers.get('sec-fetch-site')
      const isForeignForm = method === 'POST' && site === 'cross-site'
      const cookies = parseCookie(headers.get('cookie') ?? '', AS_SENT)
      const sessionToken = tokenIn(cookies, `${prefix}svc_session`)
      const known = tokenIn(cookies, `${prefix}svc_browser`)
      const browserToken = known ?? random.token(BROWSER_TOKEN_BYTES)
      const consoleToken = tokenIn(cookies, `${prefix}${CONSOLE_COOKIES.session.name}`)
      const token = { browser: null, session: sessionToken, console: consoleToken }[bound]
      const browser = {
        sessionToken,
        consoleToken,
        consoleFlow: flowIn(cookies, `${prefix}${CONSOLE_COOKIES.flow.name}`),
        consoleTenant: tenantIn(cookies, `${prefix}${CONSOLE_COOKIES.tenant.name}`),
        userAgent: (headers.get('user-agent') ?? '').slice(0, USER_AGENT_LENGTH_MAX),
        languages: browserLanguages(headers, i18n),
        id: browserId(browserToken),
        csrfToken: csrfToken(browserToken, token),
        csrfOfConsole: (begun: string) => csrfToken(browserToken, begun),
        wantsPage: wantsPage(headers),
        fromOwnPage: site === 'same-origin',
        isForeignForm,
        isNew: known === null,
      }
      return {
        browser,
        setCookie:
          known === null && !isForeignForm
            ? setCookie('svc_browser', browserToken, { maxAge: BROWSER_KEPT_SECS })
            : null,
      }
    },
    sessionCookie: (token) =>
      token === null
        ? setCookie('svc_session', '', { maxAge: 0 })
        : setCookie('svc_session', token, keptSecs === null ? {} : { maxAge: keptSecs }),
    consoleCookie(cookie, value) {
      const { name, maxAge } = CONSOLE_COOKIES[cookie]
      if (value === null) return setCookie(name, '', { maxAge: 0 })
      return setCookie(name, value, maxAge === undefined ? {} : { maxAge })
    },
  }
}

/** The language preferences of a request. */
export const browserLanguages = (
  headers: HttpExchange['headers'],
  i18n: I18nSettings,
): BrowserLanguages => ({
  header: (headers.get('accept-language') ?? '').slice(0, LANGUAGES_LENGTH_MAX),
  i18n,
})

/** True if the client accepts HTML explicitly, as browsers do. */
export function wantsPage(headers: HttpExchange['headers']): boolean {
  return /\btext\/html\b/i.test(headers.get('accept') ?? '')
}

/** Our tokens need no percent-encoding: a value that was encoded is not one of ours. */
const AS_SENT = { decode: (value: string) => value }

/** The first of two cookies with one name counts (RFC 6265 section 5.4). */
function tokenIn(cookies: Cookies, name: string): string | null {
  const value = cookies[name]
  return value !== undefined && TOKEN.test(value) ? value : null
}

const FLOW = /^(?:[A-Za-z0-9_-]{43}|complete)\.[A-Za-z0-9_-]{0,1400}$/

function flowIn(cookies: Cookies, name: string): string | null {
  const value = cookies[name]
  return value !== undefined && FLOW.test(value) ? value : null
}

function tenantIn(cookies: Cookies, name: string): string | null {
  const value = cookies[name]
  return value !== undefined && isUuid(value) ? value : null
}

function browserId(browserToken: string): string {
  return createHmac('sha256', browserToken).update('svc-browser-id-v1').digest('base64url')
}

function csrfToken(browserToken: string, sessionToken: string | null): string {
  const mac = createHmac('sha256', browserToken)
  return mac.update(`svc-csrf-v1\n${sessionToken ?? ''}`).digest('base64url')
}

/** True if a form is from a page of the service in this browser. */
export function isOwnForm(
  { method, headers, host }: Pick<HttpExchange, 'method' | 'headers' | 'host'>,
  body: unknown,
  browser: Browser,
): boolean {
  if (method === 'GET' || method === 'HEAD') return true
  if (!isNotCrossSite(headers, host)) return false
  const sent = Buffer.from(sentToken(body))
  const expected = Buffer.from(browser.csrfToken)
  return sent.length === expected.length && timingSafeEqual(sent, expected)
}

/**
 * True if the browser declares that a script of the service's own pages made the request, which has no CSRF token.
 * GET and HEAD need no such declaration, but are refused if the browser declares another origin.
 */
export function isOwnCall({
  method,
  headers,
  host,
}: Pick<HttpExchange, 'method' | 'headers' | 'host'>): boolean {
  if (!isNotCrossSite(headers, host)) return false
  if (method === 'GET' || method === 'HEAD') return true
  const origin = headers.get('origin')
  const named = origin !== undefined && origin !== 'null'
  return named || headers.get('sec-fetch-site') === 'same-origin'
}

/**
 * False if the browser declares another origin. The pages send no referrer, so browsers send `Origin: null`
 * (Fetch section 3.2) and declare the source in Sec-Fetch-Site. So do sandboxed frames of other sites, with another
 * source. For browsers that send neither, the CSRF token decides.
 */
function isNotCrossSite(headers: HttpExchange['headers'], host: string): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false
  const origin = headers.get('origin')
  if (origin === undefined) return true
  if (origin === 'null') return site === 'same-origin'
  return URL.canParse(origin) && isHostOf(host, new URL(origin))
}

function sentToken(body: unknown): string {
  const value = Array.isArray(body)
    ? (body as [string, string][]).find(([name]) => name === 'csrf_token')?.[1]
    : (body as { csrf_token?: unknown } | null)?.csrf_token
  return typeof value === 'string' ? value : ''
}
