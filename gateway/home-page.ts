/** GET /: the start page, for people who open the service in a browser. */
import { z } from 'zod'
import { renderPage } from './pages/platform/render.js'
import { NO_CONTEXT } from './response/replies.js'
import { html, ownRoute, type Route } from './route.js'

const Headers = z.object({ 'accept-language': z.string().max(1024).optional() })

export type HomePageOptions = {
  readonly issuer: string
  /** Path of the API page, or null if it is not served. */
  readonly docsPath: string | null
  /** Paths that this process serves. Links to other paths are left out. */
  readonly paths: ReadonlySet<string>
}

export function homePageRoute({ issuer, docsPath, paths }: HomePageOptions): Route {
  const served = (path: string) => (paths.has(path) ? path : null)
  const links = {
    account: served('/auth/account'),
    docs: docsPath,
    discovery: served('/.well-known/openid-configuration'),
    capabilities: served('/api/v1/capabilities'),
    bootstrap: served('/api/v1/agents/workspace/bootstrap'),
  }
  const page = html<string | undefined>(200, (acceptLanguage) =>
    renderPage(
      'home',
      { titleKey: 'home.title', branding: null, acceptLanguage },
      { issuer, links },
    ),
  )
  return ownRoute({
    method: 'GET',
    path: '/',
    operationId: 'getHomePage',
    summary: 'Start page: what this service is, and links to its documentation',
    tags: ['Hosted pages'],
    exposure: 'internal',
    security: { scheme: 'anonymous' },
    headers: Headers,
    responses: page.docs,
    answer: ({ headers }) =>
      page.render((headers as z.infer<typeof Headers>)['accept-language'], NO_CONTEXT),
  })
}
