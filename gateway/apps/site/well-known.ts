/**
 * Files at addresses that browsers and programs know: icons, robots.txt (RFC 9309), security.txt (RFC 9116),
 * llms.txt and auth.md.
 */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import type { Clock } from '../../../runtime/kernel/clock.js'
import { type SharedBody, sharedBody, sharedOnce } from '../../response/shared-body.js'
import { NO_CONTEXT } from '../../response/replies.js'
import { ownRoute, problem, type Rendered, type ResponseDoc, type Route } from '../../route.js'
import { agentText, overviewText, type TextOptions } from './agent-texts.js'
import { MARKDOWN_DOCS, textBody, TextHeaders, textType } from './markdown.js'

const DAY_SECS = 86_400
const HOUR_SECS = 3_600
/** RFC 9116 section 2.5.5 recommends less than a year. */
const EXPIRY_DAYS = 180

type WellKnownOptions = {
  readonly text: TextOptions
  /** `server.security_contact` as a URI. Undefined: the service has no security.txt. */
  readonly securityContact: string | undefined
  readonly clock: Clock
}

const shared = {
  method: 'GET',
  tags: ['First steps'],
  security: { scheme: 'anonymous' },
} as const

const templates = new URL('../../../../gateway/pages/templates/platform/', import.meta.url)
const ICON_PATH = '/favicon.svg'

function file(path: string, operationId: string, summary: string, type: string, name: string) {
  const rendered: Rendered = {
    form: 'body',
    status: 200,
    contentType: type,
    ...sharedBody(readFileSync(new URL(name, templates))),
    cacheControl: `public, max-age=${DAY_SECS}`,
  }
  const responses: ResponseDoc[] = [{ status: 200, contentType: type, schema: null }]
  const facts = { ...shared, path, operationId, summary, exposure: 'internal' } as const
  return ownRoute({ ...facts, quiet: true, responses, answer: () => rendered })
}

export function wellKnownRoutes({ text, securityContact, clock }: WellKnownOptions): Route[] {
  return [
    file('/favicon.ico', 'getIcon', 'The icon of the service', 'image/x-icon', 'icon.ico'),
    file(ICON_PATH, 'getVectorIcon', 'The icon as SVG', 'image/svg+xml', 'icon.svg'),
    robots(text.issuer),
    securityText(text.issuer, securityContact, clock),
    markdown({
      path: '/llms.txt',
      operationId: 'getOverview',
      summary: 'What this service is, with links to documents, for language models (llmstxt.org)',
      preferred: 'text/plain',
      body: () => overviewText(text),
    }),
    markdown({
      path: '/auth.md',
      operationId: 'getAgentGuide',
      summary: 'How a software agent gets an identity and asks a user for authority, in Markdown',
      preferred: 'text/markdown',
      body: () => agentText(text),
    }),
  ]
}

/** Pages of people and answers of the API are not for search engines. */
function robots(issuer: string): Route {
  const lines = [
    'User-agent: *',
    ...['/$', '/llms.txt', '/auth.md', '/documentation/', '/errors/', '/.well-known/'].map(
      (path) => `Allow: ${path}`,
    ),
    'Disallow: /',
    '',
    `# Programs and agents: ${issuer}/llms.txt and ${issuer}/auth.md`,
    '',
  ]
  const rendered = plain(sharedBody(lines.join('\n')), DAY_SECS)
  return ownRoute({
    ...shared,
    path: '/robots.txt',
    operationId: 'getRobots',
    summary: 'What crawlers may read (RFC 9309)',
    exposure: 'internal',
    quiet: true,
    responses: [{ status: 200, contentType: 'text/plain', schema: null }],
    answer: () => rendered,
  })
}

function securityText(issuer: string, contact: string | undefined, clock: Clock): Route {
  const path = '/.well-known/security.txt'
  const unknown = problem(404, 'not-found', {
    detail: 'This deployment names no contact for security reports.',
  })
  return ownRoute({
    ...shared,
    path,
    operationId: 'getSecurityContact',
    summary: 'Where to report vulnerabilities (RFC 9116)',
    description: 'Present if server.security_contact is set.',
    exposure: 'public',
    responses: [{ status: 200, contentType: 'text/plain', schema: null }, ...unknown.docs],
    answer: () => {
      if (contact === undefined) return unknown.render(null, NO_CONTEXT)
      const day = Math.floor(clock.now().getTime() / (DAY_SECS * 1000))
      const expires = new Date((day + EXPIRY_DAYS) * DAY_SECS * 1000)
      const lines = [
        `Contact: ${contact}`,
        `Expires: ${expires.toISOString().replace('.000Z', 'Z')}`,
        'Preferred-Languages: en, de',
        `Canonical: ${issuer}${path}`,
      ]
      return plain(sharedBody(`${lines.join('\n')}\n`), HOUR_SECS)
    },
  })
}

function plain(body: SharedBody, maxAgeSecs: number): Rendered {
  const { headers: _vary, ...rendered } = textBody(body, 'text/plain; charset=utf-8', maxAgeSecs)
  return rendered
}

type MarkdownFile = {
  readonly path: string
  readonly operationId: string
  readonly summary: string
  /** The type for clients that accept any. */
  readonly preferred: 'text/markdown' | 'text/plain'
  readonly body: () => string
}

function markdown({ path, operationId, summary, preferred, body }: MarkdownFile): Route {
  const written = sharedOnce(body)
  return ownRoute({
    ...shared,
    path,
    operationId,
    summary,
    exposure: 'public',
    cors: 'public',
    headers: TextHeaders,
    responses: MARKDOWN_DOCS,
    answer: ({ headers }) => {
      const { accept } = headers as z.infer<typeof TextHeaders>
      return textBody(written(), textType(accept, preferred), HOUR_SECS)
    },
  })
}
