/** The pages and files with which people, browsers and programs find their way: /, /errors, /llms.txt and so on. */
import type { I18nSettings } from '../../../actors/domain/i18n/settings.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { TenantsProtocol } from '../../../actors/identity/users/tenants/protocol.js'
import type { ActorRef } from '../../../runtime/kernel/actor.js'
import type { Route } from '../../route.js'
import { OPENAPI_PATH, type OpenapiSettings } from '../../settings.js'
import { type DevMailbox, devMailRoutes } from './dev-mail.js'
import { DOCS } from './docs/library.js'
import { docsRoutes } from './docs/routes.js'
import { errorPageRoutes } from './error-pages.js'
import { homePageRoute } from './home-page.js'
import { documentationPages, documentationRoutes } from './markdown.js'
import { wellKnownRoutes } from './well-known.js'

type SiteOptions = {
  readonly issuer: string
  readonly openapi: OpenapiSettings
  /** The other routes that this process serves. */
  readonly served: readonly Route[]
  /** Names of GET /api/v1/capabilities. */
  readonly capabilities: readonly string[]
  /** `server.security_contact`. */
  readonly securityContact: string | undefined
  readonly devMailbox: DevMailbox | undefined
  /** `server.base_domain`. */
  readonly baseDomain: string
  readonly isProduction: boolean
  /** `tenant.default_tenant_slug` is set. */
  readonly hasDefaultTenant: boolean
  /** Absent where this process has no tenants. */
  readonly tenants: ActorRef<TenantsProtocol> | undefined
  readonly clock: Clock
  readonly i18n: I18nSettings
}

export function siteRoutes(options: SiteOptions): readonly Route[] {
  const { issuer, openapi, served, securityContact, devMailbox, baseDomain, clock } = options
  const capabilities = new Set(options.capabilities)
  const docsPath = openapi.enabled ? openapi.docs_path : null
  const errors = errorPageRoutes(options.i18n)
  const mail =
    devMailbox === undefined ? [] : devMailRoutes({ mailbox: devMailbox, issuer, baseDomain })
  const known = [...served, ...errors, ...mail].map(({ path }) => path)
  const paths = new Set([...known, ...(openapi.enabled ? [OPENAPI_PATH] : [])])
  const pages = openapi.enabled ? documentationPages() : []
  const guidesPath = pages.length > 0 ? DOCS : null
  const files = wellKnownRoutes({
    text: { issuer, paths, capabilities, docsPath, pages },
    securityContact,
    clock,
  })
  for (const { path } of files) paths.add(path)
  return [
    homePageRoute({
      issuer,
      docsPath,
      guidesPath,
      paths,
      capabilities,
      i18n: options.i18n,
      isProduction: options.isProduction,
      hasDefaultTenant: options.hasDefaultTenant,
      tenants: options.tenants,
    }),
    ...errors,
    ...files,
    ...(openapi.enabled ? [...documentationRoutes(), ...docsRoutes()] : []),
    ...mail,
  ]
}
