/**
 * GET /dev/mail: the mails of a development service, for people as pages and for programs as JSON. The mails hold
 * sign-in codes, so production has no such route, and other hosts get 404: a foreign site whose name resolves to this
 * machine (DNS rebinding) cannot read them.
 */
import { z } from 'zod'
import { LOOPBACK_HOSTS } from '../../../runtime/kernel/text/urls.js'
import { chooseLanguage } from '../../pages/platform/language.js'
import { renderPage } from '../../pages/platform/render.js'
import { withoutPort } from '../../request/hosts.js'
import { NO_CONTEXT, pagePolicy } from '../../response/replies.js'
import {
  type AnyRouteRequest,
  ownRoute,
  problem,
  type Rendered,
  type ResponseDoc,
  type Route,
} from '../../route.js'

const PATH = '/dev/mail'
/** Mails have inline styles and links that replace the page around them. They get no other right. */
const MESSAGE_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; " +
  "frame-ancestors 'self'; sandbox allow-top-navigation-by-user-activation"

type ShownMail = {
  readonly id: string
  readonly to: string
  readonly subject: string
  readonly text: string
  readonly html: string
  readonly locale: string
  readonly sentAt: Date
}

/** The mails that a development service keeps. */
export interface DevMailbox {
  /** The latest first. */
  list(): readonly ShownMail[] | Promise<readonly ShownMail[]>
  find(id: string): ShownMail | undefined | Promise<ShownMail | undefined>
}

type DevMailOptions = {
  readonly mailbox: DevMailbox
  readonly issuer: string
  /** `server.base_domain`. */
  readonly baseDomain: string
}

const Headers = z.object({
  accept: z.string().max(1024).optional(),
  'accept-language': z.string().max(1024).optional(),
})
const Params = z.object({ id: z.string().max(64) })
const Mail = z
  .object({
    id: z.string(),
    to: z.string(),
    subject: z.string(),
    sent_at: z.string().describe('RFC 3339.'),
    text: z.string(),
    html: z.string(),
  })
  .meta({ id: 'DevMail' })
const unknown = problem(404, 'not-found', { detail: 'There is no such mail.' })

const page: ResponseDoc = { status: 200, contentType: 'text/html', schema: null }
const shared = {
  method: 'GET',
  tags: ['First steps'],
  exposure: 'internal',
  security: { scheme: 'anonymous' },
  cors: 'own-apps',
  headers: Headers,
} as const

export function devMailRoutes({ mailbox, issuer, baseDomain }: DevMailOptions): readonly Route[] {
  const names = new Set([...LOOPBACK_HOSTS, new URL(issuer).hostname, baseDomain.toLowerCase()])
  const isOurs = (host: string) => {
    const name = withoutPort(host)
    return names.has(name) || name.endsWith(`.${baseDomain.toLowerCase()}`)
  }
  const missing = () => unknown.render(null, NO_CONTEXT)
  const found = async (request: AnyRouteRequest): Promise<ShownMail | undefined> =>
    isOurs(request.host) ? mailbox.find((request.params as z.infer<typeof Params>).id) : undefined

  const list = ownRoute({
    ...shared,
    path: PATH,
    operationId: 'listDevMails',
    summary: 'The latest mails of a development service',
    description: 'Present outside production with email.dev_mailbox. JSON, or a page for browsers.',
    responses: [page, json(z.array(Mail)), ...unknown.docs],
    answer: async (request) => {
      if (!isOurs(request.host)) return missing()
      const mails = await mailbox.list()
      if (!wantsPage(request)) return jsonBody(mails.map(wire))
      const { time } = languageOf(request)
      const rows = mails.map((mail) => ({ ...mail, when: time(mail.sentAt) }))
      return shown('dev-mail', 'dev_mail.title', request, { rows, path: PATH })
    },
  })

  const read = ownRoute({
    ...shared,
    path: `${PATH}/{id}`,
    operationId: 'readDevMail',
    summary: 'A mail of a development service',
    params: Params,
    responses: [page, json(Mail), ...unknown.docs],
    answer: async (request) => {
      const mail = await found(request)
      if (mail === undefined) return missing()
      if (!wantsPage(request)) return jsonBody(wire(mail))
      const { time } = languageOf(request)
      const link = /https?:\/\/\S+/.exec(mail.text)?.[0] ?? null
      const content = { mail, link, when: time(mail.sentAt), path: PATH }
      return shown('dev-mail-message', 'dev_mail.message.title', request, content)
    },
  })

  const frame = ownRoute({
    ...shared,
    path: `${PATH}/{id}/html`,
    operationId: 'readDevMailHtml',
    summary: 'The HTML of a mail, for the sandboxed frame of its page',
    params: Params,
    responses: [page, ...unknown.docs],
    answer: async (request) => {
      const mail = await found(request)
      if (mail === undefined) return missing()
      return {
        form: 'body',
        status: 200,
        contentType: 'text/html; charset=utf-8',
        body: mail.html.replace('<head>', '<head>\n<base target="_top">'),
        policy: MESSAGE_POLICY,
      }
    },
  })
  return [list, read, frame]
}

const json = (schema: z.ZodType): ResponseDoc => ({
  status: 200,
  contentType: 'application/json',
  schema,
})

const jsonBody = (value: unknown): Rendered => ({
  form: 'body',
  status: 200,
  contentType: 'application/json',
  body: JSON.stringify(value),
  headers: { vary: 'Accept' },
})

const wire = ({ id, to, subject, sentAt, text, html }: ShownMail): z.input<typeof Mail> => ({
  id,
  to,
  subject,
  sent_at: sentAt.toISOString(),
  text,
  html,
})

const headersOf = ({ headers }: AnyRouteRequest) => headers as z.infer<typeof Headers>

function wantsPage(request: AnyRouteRequest): boolean {
  return /\btext\/html\b/i.test(headersOf(request).accept ?? '')
}

function languageOf(request: AnyRouteRequest) {
  return chooseLanguage(undefined, headersOf(request)['accept-language'])
}

function shown(
  template: string,
  titleKey: 'dev_mail.title' | 'dev_mail.message.title',
  request: AnyRouteRequest,
  content: Readonly<Record<string, unknown>>,
): Rendered {
  const acceptLanguage = headersOf(request)['accept-language']
  return {
    form: 'body',
    status: 200,
    contentType: 'text/html; charset=utf-8',
    body: renderPage(template, { titleKey, branding: null, acceptLanguage }, content),
    headers: { vary: 'Accept, Accept-Language' },
    policy: `${pagePolicy([])}; frame-src 'self'`,
  }
}
