/** The setup of the gallery: a service with all features, another one as identity provider, and a shop. */
import { type Api, apiOf, type Workspace as ApiWorkspace } from '../api.js'
import { sql } from '../storage/sql.js'
import { type MailServer, openMailServer } from '../operations/mail.js'
import { bootstrapped, type Workspace } from '../identity/person.js'
import { COMMERCE, openShop, type Shop } from '../commerce/shop.js'
import { type TestService } from '../service.js'
import { type UpstreamHouse, upstreamFixture } from '../vault/upstream.js'

export interface Stage {
  readonly running: TestService
  readonly resources: UpstreamHouse
  readonly mail: MailServer
  readonly api: Api
  end(): Promise<void>
}

/** The resources of one walk through the gallery. */
export type Scene = Stage & {
  readonly workspace: ApiWorkspace
  readonly tenantSlug: string
  readonly operators: Workspace
  readonly shop: Shop
}

export async function openStage(): Promise<Stage> {
  const mail = await openMailServer()
  // Cookies know no ports: the one is plain, the other has the prefix of TLS.
  const resources = await upstreamFixture({
    transport: 'plain_http',
    environment: {
      ...mail.environment,
      ...COMMERCE,
      SVC_GENERIC_OAUTH__NAME: 'Lighthouse',
      SVC_PASSKEY__ENABLED: 'true',
      SVC_USER_SELF_SERVICE__ENABLED: 'true',
      SVC_INVITATIONS__ENABLED: 'true',
      SVC_EMAIL_OTP__ENABLED: 'true',
      SVC_MAGIC_LINK__ENABLED: 'true',
      SVC_PHONE__ENABLED: 'true',
      SVC_PHONE__PROVIDER: 'log',
      SVC_SMS__ENABLED: 'true',
      SVC_SMS__PER_NUMBER_GAP_SECS: '0',
      SVC_SIWE__ENABLED: 'true',
      SVC_ANONYMOUS__ENABLED: 'true',
      SVC_AUTH__BRUTE_FORCE_MAX_ATTEMPTS: '4',
      // A complete walk takes long.
      SVC_JWT__ACCESS_TOKEN_LIFETIME_AGENT_SECS: '3600',
      SVC_DEVICE_AUTHORIZATION__APPROVAL_MAX_AUTH_AGE_SECS: '3600',
    },
  })
  const { running } = resources
  const api = apiOf(running)
  return {
    running,
    resources,
    mail,
    api,
    async end() {
      await api.close()
      await resources.end()
      await mail.close()
    },
  }
}

export async function setScene(stage: Stage): Promise<Scene> {
  const { api, running } = stage
  const [workspace, operators] = [await api.workspace('Harbour Works'), await bootstrapped(running)]
  const shop = await openShop(running)
  const settings = {
    branding: { name: 'Harbour Works', color: '#0b7285' },
    anonymous: { enabled: true },
  }
  const shopSettings = { branding: { name: 'Tea House', color: '#a61e4d' } }
  for (const [tenantId, given] of [
    [workspace.tenantId, settings],
    [shop.workspace.tenantId, shopSettings],
  ] as const) {
    await sql(running)`
      update tenants set settings = settings || ${JSON.stringify(given)} where id = ${tenantId}`
  }
  return { ...stage, workspace, tenantSlug: String(workspace.body['tenant_slug']), operators, shop }
}
