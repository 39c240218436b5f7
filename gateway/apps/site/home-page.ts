/** GET /: the start page, for people who open the service in a browser. */
import { z } from 'zod'
import type { I18nSettings } from '../../../actors/domain/i18n/settings.js'
import type { BrowserLanguages } from '../../pages/platform/language.js'
import { renderPage } from '../../pages/platform/render.js'
import { NO_CONTEXT } from '../../response/replies.js'
import { html, ownRoute, type Route } from '../../route.js'

const Headers = z.object({ 'accept-language': z.string().max(1024).optional() })
const CAPABILITIES = '/api/v1/capabilities'
/** Linked where the deployment has the capability. */
const CONSOLE = { capability: 'console', path: '/console' } as const

type HomePageOptions = {
  readonly issuer: string
  /** Path of the API page, or null if it is not served. */
  readonly docsPath: string | null
  /** Path of the documentation, or null if it is not installed. */
  readonly guidesPath: string | null
  /** Paths that this process serves. Links to other paths are left out. */
  readonly paths: ReadonlySet<string>
  /** Names of GET /api/v1/capabilities. */
  readonly capabilities: ReadonlySet<string>
  readonly i18n: I18nSettings
  /** Whether a request to this Host means a tenant other than the control plane. */
  readonly namesTenant: (host: string) => boolean
}

export function homePageRoute(options: HomePageOptions): Route {
  const { issuer, docsPath, guidesPath, paths, capabilities, i18n, namesTenant } = options
  const served = (path: string) => (paths.has(path) ? path : null)
  const links = {
    account: served('/auth/account'),
    console: capabilities.has(CONSOLE.capability) ? CONSOLE.path : null,
    guides: guidesPath,
    docs: docsPath,
    mail: served('/dev/mail'),
    agents: served('/auth.md'),
    overview: served('/llms.txt'),
    discovery: served('/.well-known/openid-configuration'),
    bootstrap: served('/api/v1/agents/workspace/bootstrap'),
    capabilities: served(CAPABILITIES),
  }
  const mcp = capabilities.has('mcp') ? `${issuer}/mcp` : null
  const curl = `curl ${issuer}${CAPABILITIES}`
  const page = html<{ readonly host: string; readonly acceptLanguage: BrowserLanguages }>(
    200,
    ({ host, acceptLanguage }) =>
      renderPage(
        'home',
        { titleKey: 'home.title', branding: null, acceptLanguage },
        { issuer, links, mcp, curl, asksWorkspace: !namesTenant(host) },
      ),
    () => ({ vary: 'Accept-Language' }),
  )
  return ownRoute({
    method: 'GET',
    path: '/',
    operationId: 'getHomePage',
    summary: 'Start page: what this service is, and links to its documentation',
    tags: ['First steps'],
    exposure: 'internal',
    security: { scheme: 'anonymous' },
    headers: Headers,
    responses: page.docs,
    answer: ({ headers, host }) => {
      const header = (headers as z.infer<typeof Headers>)['accept-language'] ?? ''
      return page.render({ host, acceptLanguage: { header, i18n } }, NO_CONTEXT)
    },
  })
}
