/**
 * GET /: on the host of a tenant its sign-in; in development the workspaces and what helps to build with them; in
 * production a quiet page. No page names the control plane.
 */
import { z } from 'zod'
import type { I18nSettings } from '../../../actors/domain/i18n/settings.js'
import type { TenantsProtocol } from '../../../actors/identity/users/tenants/protocol.js'
import type { ActorRef, AskOptions } from '../../../runtime/kernel/actor.js'
import { LOOPBACK_HOSTS } from '../../../runtime/kernel/text/urls.js'
import { renderPage } from '../../pages/platform/render.js'
import { withoutPort } from '../../request/hosts.js'
import { NO_CONTEXT } from '../../response/replies.js'
import { html, ownRoute, type Route } from '../../route.js'

const Headers = z.object({ 'accept-language': z.string().max(1024).optional() })
const CAPABILITIES = '/api/v1/capabilities'
const ACCOUNT = '/auth/account'
/** Linked where the deployment has the capability. */
const CONSOLE = { capability: 'console', path: '/console' } as const
const WORKSPACES_MAX = 10

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
  readonly isProduction: boolean
  /** A tenant serves requests that name no other. */
  readonly hasDefaultTenant: boolean
  /** Absent where this process has no tenants. */
  readonly tenants: ActorRef<TenantsProtocol> | undefined
}

export function homePageRoute(options: HomePageOptions): Route {
  const { issuer, docsPath, guidesPath, paths, capabilities, i18n, tenants } = options
  const { isProduction, hasDefaultTenant } = options
  const served = (path: string) => (paths.has(path) ? path : null)
  const account = served(ACCOUNT)
  const links = {
    account,
    guides: guidesPath,
    docs: docsPath,
    console: capabilities.has(CONSOLE.capability) && !isProduction ? CONSOLE.path : null,
    mail: served('/dev/mail'),
    agents: served('/auth.md'),
    overview: served('/llms.txt'),
    discovery: served('/.well-known/openid-configuration'),
    bootstrap: served('/api/v1/agents/workspace/bootstrap'),
    capabilities: served(CAPABILITIES),
  }
  const shared = {
    issuer,
    links,
    isProduction,
    asksWorkspace: !hasDefaultTenant,
    mcp: capabilities.has('mcp') ? `${issuer}/mcp` : null,
    curl: `curl ${issuer}${CAPABILITIES}`,
    init: `npm run --silent svc -- init --url ${issuer}`,
  }
  const page = html(
    200,
    ({
      header,
      ...shown
    }: {
      readonly header: string
      readonly workspaces: readonly object[] | null
    }) =>
      renderPage(
        'home',
        {
          titleKey: 'home.title',
          branding: null,
          acceptLanguage: { header, i18n },
        },
        { ...shared, ...shown },
      ),
    () => ({ vary: 'Accept-Language' }),
  )

  /** How a request to this host means a tenant that people sign in to, or null. */
  async function tenantBy(host: string, asking: AskOptions) {
    const found = await tenants?.resolve({ host }, asking)
    return found?.tag !== 'resolved' || found.tenant.controlPlane ? null : found.by
  }

  /** The newest workspaces of a development service. A foreign site that resolves to this machine gets none. */
  async function workspacesAt(host: string, asking: AskOptions) {
    const isOurs = [...LOOPBACK_HOSTS, new URL(issuer).hostname].includes(withoutPort(host))
    if (isProduction || hasDefaultTenant || tenants === undefined || !isOurs) return null
    return (await tenants.listNewestTenants({ limit: WORKSPACES_MAX }, asking)).tenants
  }

  return ownRoute({
    method: 'GET',
    path: '/',
    operationId: 'getHomePage',
    summary: 'Start page: what this service is, or the sign-in of the tenant of the host',
    tags: ['First steps'],
    exposure: 'internal',
    security: { scheme: 'anonymous' },
    headers: Headers,
    responses: [...page.docs, { status: 303, contentType: null, schema: null }],
    answer: async ({ headers, host }, asking) => {
      const by = await tenantBy(host, asking)
      if (account !== null && (by === 'host' || (by === 'default' && isProduction))) {
        const headers = { location: account }
        return { form: 'body', status: 303, contentType: null, body: null, headers }
      }
      const header = (headers as z.infer<typeof Headers>)['accept-language'] ?? ''
      return page.render({ header, workspaces: await workspacesAt(host, asking) }, NO_CONTEXT)
    },
  })
}
