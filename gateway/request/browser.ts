/**
 * The browser behind a request for a page: its cookies, and the proof that a form is one of ours.
 *
 * Two cookies. `svc_session` names the session and changes with every sign-in. `svc_browser` is a
 * secret of the browser alone, given with the first page; the `csrf_token` of a form is a MAC under
 * it, over the session token where the page belongs to a session. Nothing is stored: who does not
 * have the cookies cannot make the token. Over TLS both carry the `__Host-` prefix, so that no
 * sub-domain can plant them (RFC 6265bis section 4.1.3.2).
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Random } from '../../runtime/kernel/random.js'
import type { HttpExchange } from '../http-exchange.js'
import { isHostOf } from './hosts.js'

/** What pages and their actors may know of the browser. */
export type Browser = {
  /** The session cookie; null when it has none of the right shape. */
  readonly sessionToken: string | null
  /** User-Agent as sent, cut to 256 characters. */
  readonly userAgent: string
  /** Accept-Language as sent. */
  readonly languages: string
  /** Tells this browser from every other; says nothing else. */
  readonly id: string
  /** The value of `csrf_token` in the forms of this answer. */
  readonly csrfToken: string
  /** It asks for HTML: a person looks at what comes back. */
  readonly wantsPage: boolean
  /** It says that a page of ours led here (Sec-Fetch-Site: same-origin, W3C Fetch Metadata section 2.4). */
  readonly fromOwnPage: boolean
  /** It brought no cookie of ours: it is new here, or keeps none. */
  readonly isNew: boolean
}

/** For routes that are no pages. */
export const NO_BROWSER: Browser = Object.freeze({
  sessionToken: null,
  userAgent: '',
  languages: '',
  id: '',
  csrfToken: '',
  wantsPage: false,
  fromOwnPage: false,
  isNew: true,
})

/** Session and browser tokens: 32 random bytes. */
export const BROWSER_TOKEN_BYTES = 32
const TOKEN = /^[A-Za-z0-9_-]{43}$/
const USER_AGENT_LENGTH_MAX = 256
const LANGUAGES_LENGTH_MAX = 512

export type CookieSettings = {
  /** The public address is https: cookies are Secure and carry the prefix. */
  readonly secure: boolean
  /** The session cookie outlives the browser window for this long; null: it ends with it. */
  readonly keptSecs: number | null
}

export interface BrowserReader {
  /**
   * Reads the cookies. `withSession` binds the form token to the session. `setCookie` is what a new
   * browser has to be told; null for one that we know.
   */
  read(
    exchange: Pick<HttpExchange, 'headers'>,
    withSession: boolean,
  ): { readonly browser: Browser; readonly setCookie: string | null }
  /** The Set-Cookie value that gives or (null) takes away the session. */
  sessionCookie(token: string | null): string
}

export function browserReader({ secure, keptSecs }: CookieSettings, random: Random): BrowserReader {
  const prefix = secure ? '__Host-' : ''
  const attributes = `Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
  const kept = keptSecs === null ? '' : `; Max-Age=${keptSecs}`
  return {
    read({ headers }, withSession) {
      const cookies = parseCookies(headers.get('cookie') ?? '')
      const sessionToken = tokenIn(cookies, `${prefix}svc_session`)
      const known = tokenIn(cookies, `${prefix}svc_browser`)
      const browserToken = known ?? random.token(BROWSER_TOKEN_BYTES)
      const browser = {
        sessionToken,
        userAgent: (headers.get('user-agent') ?? '').slice(0, USER_AGENT_LENGTH_MAX),
        languages: (headers.get('accept-language') ?? '').slice(0, LANGUAGES_LENGTH_MAX),
        id: browserId(browserToken),
        csrfToken: csrfToken(browserToken, withSession ? sessionToken : null),
        wantsPage: wantsPage(headers),
        fromOwnPage: headers.get('sec-fetch-site') === 'same-origin',
        isNew: known === null,
      }
      const setCookie =
        known === null ? `${prefix}svc_browser=${browserToken}; ${attributes}` : null
      return { browser, setCookie }
    },
    sessionCookie: (token) =>
      token === null
        ? `${prefix}svc_session=; ${attributes}; Max-Age=0`
        : `${prefix}svc_session=${token}; ${attributes}${kept}`,
  }
}

/** Whether what asks is a browser that shows what it gets: programs do not ask for HTML. */
export function wantsPage(headers: HttpExchange['headers']): boolean {
  return /\btext\/html\b/i.test(headers.get('accept') ?? '')
}

/** Cookie pairs by name (RFC 6265 section 5.4). Of two with one name the first counts. */
export function parseCookies(header: string): ReadonlyMap<string, string> {
  const cookies = new Map<string, string>()
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=')
    if (equals < 1) continue
    const name = pair.slice(0, equals).trim()
    if (!cookies.has(name)) cookies.set(name, pair.slice(equals + 1).trim())
  }
  return cookies
}

function tokenIn(cookies: ReadonlyMap<string, string>, name: string): string | null {
  const value = cookies.get(name)
  return value !== undefined && TOKEN.test(value) ? value : null
}

function browserId(browserToken: string): string {
  return createHmac('sha256', browserToken).update('svc-browser-id-v1').digest('base64url')
}

function csrfToken(browserToken: string, sessionToken: string | null): string {
  const mac = createHmac('sha256', browserToken)
  return mac.update(`svc-csrf-v1\n${sessionToken ?? ''}`).digest('base64url')
}

/** Whether a form is one that we gave to this browser. */
export function isOwnForm(
  { method, headers, host }: Pick<HttpExchange, 'method' | 'headers' | 'host'>,
  body: unknown,
  browser: Browser,
): boolean {
  if (method === 'GET' || method === 'HEAD') return true
  if (!comesFromHere(headers, host)) return false
  const sent = Buffer.from(sentToken(body))
  const expected = Buffer.from(browser.csrfToken)
  return sent.length === expected.length && timingSafeEqual(sent, expected)
}

/**
 * Whether a browser says by itself that a script of a page of ours made the request: there is no form
 * token in it. Reading needs no such word, but none that says otherwise.
 */
export function isOwnCall({
  method,
  headers,
  host,
}: Pick<HttpExchange, 'method' | 'headers' | 'host'>): boolean {
  if (!comesFromHere(headers, host)) return false
  if (method === 'GET' || method === 'HEAD') return true
  const origin = headers.get('origin')
  const named = origin !== undefined && origin !== 'null'
  return named || headers.get('sec-fetch-site') === 'same-origin'
}

/**
 * What the browser says of the page that sent the form. Our pages send no referrer, so browsers
 * hide their origin too (`Origin: null`, Fetch section 3.2) and say where a form comes from in
 * Sec-Fetch-Site; those that say neither are left to the token.
 */
function comesFromHere(headers: HttpExchange['headers'], host: string): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false
  const origin = headers.get('origin')
  if (origin === undefined || origin === 'null') return true
  return URL.canParse(origin) && isHostOf(host, new URL(origin))
}

function sentToken(body: unknown): string {
  const value = Array.isArray(body)
    ? (body as [string, string][]).find(([name]) => name === 'csrf_token')?.[1]
    : (body as { csrf_token?: unknown } | null)?.csrf_token
  return typeof value === 'string' ? value : ''
}
