/** GET /errors/{name}: the page of a problem type, at its type URI (RFC 9457 section 3.1.1). */
import { z } from 'zod'
import { OAUTH_ERRORS } from '../../actors/domain/oauth-reasons.js'
import { strongTag } from '../capabilities.js'
import { renderPage } from '../pages/platform/render.js'
import { problemCode, PROBLEM_TYPES, type ProblemName } from '../response/problems.js'
import { NO_CONTEXT } from '../response/replies.js'
import { ownRoute, problem, type Rendered, type ResponseDoc, type Route } from '../route.js'
import { PROBLEM_ADVICE, RETRY_RULES } from './problem-advice.js'

const Params = z.object({ name: z.string().max(64) })
const PAGE_DOCS: readonly ResponseDoc[] = [{ status: 200, contentType: 'text/html', schema: null }]

export function errorPageRoutes(): readonly Route[] {
  const unknown = problem(404, 'not-found', { detail: 'There is no such problem type.' })
  const shared = {
    method: 'GET',
    tags: ['Operations'],
    exposure: 'public',
    security: { scheme: 'anonymous' },
  } as const
  const list = ownRoute({
    ...shared,
    path: '/errors',
    operationId: 'listProblemTypes',
    summary: 'All problem types, as a page',
    responses: PAGE_DOCS,
    answer: () => pageOf(null),
  })
  const one = ownRoute({
    ...shared,
    path: '/errors/{name}',
    operationId: 'getProblemType',
    summary: 'Explain a problem type or OAuth error: its cause and what to do',
    description:
      'The type of a problem document and the error_uri of an OAuth error lead here. The page of an OAuth error ' +
      'has one anchor for each reason.',
    params: Params,
    responses: [...PAGE_DOCS, ...unknown.docs],
    answer: (request) => {
      const { name } = request.params as z.infer<typeof Params>
      if (isProblemName(name)) return pageOf(name)
      const code = name.replaceAll('-', '_')
      return isOAuthCode(code) ? oauthPageOf(code) : unknown.render(null, NO_CONTEXT)
    },
  })
  return [list, one]
}

function isProblemName(name: string): name is ProblemName {
  return Object.hasOwn(PROBLEM_TYPES, name)
}

type OAuthCode = keyof typeof OAUTH_ERRORS

function isOAuthCode(code: string): code is OAuthCode {
  return Object.hasOwn(OAUTH_ERRORS, code)
}

const pages = new Map<string, Rendered>()

function pageOf(name: ProblemName | null): Rendered {
  return kept(name ?? '', () => (name === null ? listText() : typeText(name)))
}

function oauthPageOf(code: OAuthCode): Rendered {
  return kept(code, () => oauthText(code))
}

/** Renders a page once. */
function kept(name: string, text: () => string): Rendered {
  const known = pages.get(name)
  if (known !== undefined) return known
  const body = text()
  const rendered: Rendered = {
    form: 'body',
    status: 200,
    contentType: 'text/html; charset=utf-8',
    body,
    etag: strongTag(body),
    cacheControl: 'public, max-age=3600',
  }
  pages.set(name, rendered)
  return rendered
}

/** In English, as problem documents are. */
const frame = (title: string) =>
  ({ titleKey: 'error.title', title, branding: null, acceptLanguage: 'en' }) as const

function typeText(name: ProblemName): string {
  const { status, title, meaning } = PROBLEM_TYPES[name]
  const { remedy, retry } = PROBLEM_ADVICE[name]
  const code = problemCode(name)
  const reasons = isOAuthCode(code) ? reasonsOf(code) : []
  const content = { status, code, meaning, remedy, retry: RETRY_RULES[retry], reasons }
  return renderPage('problem-type', frame(title), content)
}

function oauthText(code: OAuthCode): string {
  const { meaning } = OAUTH_ERRORS[code]
  return renderPage('oauth-error', frame(code), { code, meaning, reasons: reasonsOf(code) })
}

function reasonsOf(code: OAuthCode) {
  const { reasons } = OAUTH_ERRORS[code]
  const explained = Object.entries(reasons as Readonly<Record<string, readonly [string, string]>>)
  return explained.map(([reason, [cause, remedy]]) => ({ reason, cause, remedy }))
}

function listText(): string {
  const types = Object.entries(PROBLEM_TYPES).map(([name, { status, title }]) => ({
    name,
    status,
    title,
  }))
  const codes = Object.keys(OAUTH_ERRORS).map((code) => ({ name: code.replaceAll('_', '-'), code }))
  return renderPage('problem-types', frame('Errors'), { types, codes })
}
