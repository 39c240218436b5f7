/**
 * A browser without a screen: keeps cookies, fills in the forms of the HTML, and follows redirects
 * only on demand, so that each step is visible.
 */
import { parseSetCookie, stringifyCookie } from 'cookie'
import { request } from 'undici'
import { serviceAgent } from './connections.js'

export type Form = {
  readonly action: string
  readonly method: string
  /** Every named field, with the value that would be sent. */
  readonly fields: Readonly<Record<string, string>>
}

export type Page = {
  readonly path: string
  readonly status: number
  /** Without Set-Cookie, which may occur several times. */
  readonly headers: Readonly<Record<string, string>>
  readonly setCookies: readonly string[]
  readonly html: string
  readonly forms: readonly Form[]
  /** The target of a redirect: a path on our own pages, otherwise the whole URL. */
  readonly location: string | null
}

export interface Browser {
  readonly cookies: Map<string, string>
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<Page>
  post(
    path: string,
    fields: Readonly<Record<string, string>>,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Page>
  /**
   * Submits a form of a page, with these values in place of the form's: the first form, or the one
   * with this `action`.
   */
  submit(
    page: Page,
    fields?: Readonly<Record<string, string>>,
    action?: string | RegExp,
  ): Promise<Page>
  /** Follows redirects as long as they lead to our own pages. */
  follow(page: Page): Promise<Page>
  close(): Promise<void>
}

/** Cookie values are kept and sent without percent-decoding, as browsers do. */
const AS_SENT = { decode: (value: string) => value, encode: (value: string) => value }

export function openBrowser({
  baseUrl,
  ca,
  userAgent = 'svc',
}: {
  readonly baseUrl: string
  /** PEM of the CA to trust, when the system does not know it. */
  readonly ca?: string | undefined
  readonly userAgent?: string | undefined
}): Browser {
  const dispatcher = serviceAgent(ca === undefined ? {} : { connect: { ca } })
  const cookies = new Map<string, string>()

  async function send(
    method: 'GET' | 'POST',
    path: string,
    body: string | null,
    headers: Readonly<Record<string, string>>,
  ): Promise<Page> {
    const cookie = stringifyCookie(Object.fromEntries(cookies), AS_SENT)
    const answer = await request(new URL(path, baseUrl), {
      dispatcher,
      method,
      body,
      headers: {
        accept: 'text/html',
        'user-agent': userAgent,
        ...(cookie === '' ? {} : { cookie }),
        ...(body === null ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
        ...headers,
      },
    })
    const html = await answer.body.text()
    const setCookies = [answer.headers['set-cookie'] ?? []].flat()
    for (const line of setCookies) keep(line)
    const target = answer.headers['location']
    return {
      path,
      status: answer.statusCode,
      headers: Object.fromEntries(
        Object.entries(answer.headers).map(([name, value]) => [name, String(value)]),
      ),
      setCookies,
      html,
      forms: formsIn(html),
      location: typeof target === 'string' ? ownPath(target) : null,
    }
  }

  function keep(line: string): void {
    const { name, value = '', maxAge } = parseSetCookie(line, AS_SENT)
    if (maxAge === 0) cookies.delete(name)
    else cookies.set(name, value)
  }

  function ownPath(target: string): string {
    const url = new URL(target, baseUrl)
    return url.origin === new URL(baseUrl).origin ? url.pathname + url.search : url.href
  }

  const browser: Browser = {
    cookies,
    get: (path, headers = {}) => send('GET', path, null, headers),
    post: (path, fields, headers = {}) =>
      send('POST', path, new URLSearchParams(fields).toString(), headers),
    submit(page, fields = {}, action) {
      const form =
        action === undefined
          ? page.forms[0]
          : page.forms.find((one) =>
              typeof action === 'string' ? one.action === action : action.test(one.action),
            )
      if (form === undefined) throw new Error(`no such form on ${page.path}: ${page.html}`)
      return browser.post(form.action, { ...form.fields, ...fields })
    },
    async follow(page) {
      let at = page
      for (let hops = 0; hops < 10; hops += 1) {
        if (at.location === null || !at.location.startsWith('/')) return at
        at = await browser.get(at.location)
      }
      throw new Error(`endless redirects from ${page.path}`)
    },
    close: () => dispatcher.close(),
  }
  return browser
}

function formsIn(html: string): Form[] {
  return [...html.matchAll(/<form\b([^>]*)>(.*?)<\/form>/gs)].map(([, head = '', inside = '']) => {
    const fields: Record<string, string> = {}
    for (const [tag] of inside.matchAll(/<(?:input|button)\b[^>]*>/g)) {
      const name = attribute(tag, 'name')
      const isBox = attribute(tag, 'type') === 'checkbox'
      if (name === null || (isBox && !/\schecked\b/.test(tag))) continue
      const value = attribute(tag, 'value') ?? ''
      // Checked boxes of one name are lines, as in the forms of the console.
      fields[name] = isBox && name in fields ? `${fields[name]}\n${value}` : value
    }
    for (const [, tag = '', text = ''] of inside.matchAll(
      /<textarea\b([^>]*)>(.*?)<\/textarea>/gs,
    )) {
      const name = attribute(tag, 'name')
      // HTML drops a line break at the start of a text area.
      if (name === null) continue
      const typed = unescaped(text.replace(/^\n/, ''))
      fields[name] = [fields[name], typed].filter(Boolean).join('\n')
    }
    for (const [, tag = '', options = ''] of inside.matchAll(
      /<select\b([^>]*)>(.*?)<\/select>/gs,
    )) {
      const name = attribute(tag, 'name')
      const all = [...options.matchAll(/<option\b([^>]*)>/g)].map(([, option = '']) => option)
      const chosen = all.find((option) => /\sselected\b/.test(option)) ?? all[0]
      if (name !== null) fields[name] = attribute(chosen ?? '', 'value') ?? ''
    }
    return {
      action: attribute(head, 'action') ?? '',
      method: (attribute(head, 'method') ?? 'get').toUpperCase(),
      fields,
    }
  })
}

/** The value of an attribute, with its entities resolved. */
export function attribute(tag: string, name: string): string | null {
  const value = new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1]
  return value === undefined ? null : unescaped(value)
}

export function unescaped(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
}
