/** GET /errors/{name}: the page of a problem type, at its type URI (RFC 9457 section 3.1.1). */
import { z } from 'zod'
import { problemCode, PROBLEM_TYPES, type ProblemName } from './problems.js'
import { renderPage } from '../pages/platform/render.js'
import { NO_CONTEXT } from './replies.js'
import { html, ownRoute, problem, type Route } from '../route.js'

const Params = z.object({ name: z.string().max(64) })

export function errorPagesRoute(): Route {
  const page = html<ProblemName>(200, pageOf)
  const unknown = problem(404, 'not-found', { detail: 'There is no such problem type.' })
  return ownRoute({
    method: 'GET',
    path: '/errors/{name}',
    operationId: 'getProblemType',
    summary: 'Explain a problem type',
    tags: ['Operations'],
    exposure: 'public',
    security: { scheme: 'anonymous' },
    params: Params,
    cache: 'public, max-age=3600',
    responses: [...page.docs, ...unknown.docs],
    answer: (request) => {
      const { name } = request.params as z.infer<typeof Params>
      return isProblemName(name) ? page.render(name, NO_CONTEXT) : unknown.render(null, NO_CONTEXT)
    },
  })
}

function isProblemName(name: string): name is ProblemName {
  return Object.hasOwn(PROBLEM_TYPES, name)
}

/** In English, as problem documents are. */
function pageOf(name: ProblemName): string {
  const { status, title, meaning } = PROBLEM_TYPES[name]
  return renderPage(
    'problem-type',
    { titleKey: 'error.title', title, branding: null, acceptLanguage: 'en' },
    { status, code: problemCode(name), meaning },
  )
}
