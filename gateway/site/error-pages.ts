/** GET /errors/{name}: the page of a problem type, at its type URI (RFC 9457 section 3.1.1). */
import { z } from 'zod'
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
    summary: 'Explain a problem type: its cause, what to do, and whether to repeat the request',
    params: Params,
    responses: [...PAGE_DOCS, ...unknown.docs],
    answer: (request) => {
      const { name } = request.params as z.infer<typeof Params>
      return isProblemName(name) ? pageOf(name) : unknown.render(null, NO_CONTEXT)
    },
  })
  return [list, one]
}

function isProblemName(name: string): name is ProblemName {
  return Object.hasOwn(PROBLEM_TYPES, name)
}

const pages = new Map<ProblemName | null, Rendered>()

function pageOf(name: ProblemName | null): Rendered {
  const known = pages.get(name)
  if (known !== undefined) return known
  const body = name === null ? listText() : typeText(name)
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
  const content = { status, code: problemCode(name), meaning, remedy, retry: RETRY_RULES[retry] }
  return renderPage('problem-type', frame(title), content)
}

function listText(): string {
  const types = Object.entries(PROBLEM_TYPES).map(([name, { status, title }]) => ({
    name,
    status,
    title,
  }))
  return renderPage('problem-types', frame('Problem types'), { types })
}
