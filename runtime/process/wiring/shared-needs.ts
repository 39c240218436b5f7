/** What more than one actor needs, made once for a process. */
import { createClientLogos } from '../../../actors/oauth/tokens/clients/metadata/client-logos.js'
import { createMetadataClients } from '../../../actors/oauth/tokens/clients/metadata/metadata-clients.js'
import { createRemoteDocuments } from '../../../actors/platform/outbound-http/remote-documents.js'
import { ownAddressTest } from '../../../actors/platform/oauth/audience-ownership.js'
import { TenantGroups } from '../../../actors/platform/tenant-groups.js'
import { createDocuments } from '../../../actors/platform/outbound-http/documents.js'
import { signInOffers } from '../../../actors/identity/sign-in/ways/ways-in.js'
import type { TenantsProtocol } from '../../../actors/identity/users/tenants/protocol.js'
import type { ActorRef } from '../../kernel/actor.js'
import { captchaOf, mailQueueOf } from './mail.js'
import type { ProcessResources } from '../process-resources.js'
import { egressSettingsOf, ownAddressesOf } from './egress-settings.js'

export type SharedNeeds = ReturnType<typeof sharedNeeds>

/** The dependencies that files of this folder share. */
export function sharedNeeds(resources: ProcessResources) {
  const { settings, database, coordination, kms, sealer, clock, random, metrics } = resources
  const { webhooks, jwt, dpop, auth, challenge, server, openapi } = settings
  const issuer = settings.oidc.issuer_url
  const alwaysTwo = settings.two_factor.enabled
  const { registry } = metrics
  const offers = signInOffers(settings)
  const { captcha, gate } = captchaOf(resources)
  const mailQueue = mailQueueOf(resources)
  const groups = new TenantGroups({ database, clock })
  const documents = createDocuments({ settings: egressSettingsOf(settings), clock })
  /** The dependencies of nearly every actor. */
  const common = { database, clock, random }
  const isOwnAddress = ownAddressTest(ownAddressesOf(settings))
  const tenancy = {
    baseDomain: server.base_domain,
    issuerHost: new URL(issuer).hostname,
    defaultTenantSlug: settings.tenant.default_tenant_slug,
  }
  const remoteDocuments = createRemoteDocuments({
    database,
    clock,
    settings: egressSettingsOf(settings),
    documentBytesMax: settings.oidc.client_id_metadata_max_bytes,
  })
  const clientLogos = createClientLogos({ settings: egressSettingsOf(settings), clock })
  const metadataClientsOf = (tenantsRef: ActorRef<TenantsProtocol>) =>
    createMetadataClients({
      ...common,
      tenants: tenantsRef,
      remote: remoteDocuments,
      documents,
      issuer,
      enabled: settings.oidc.client_id_metadata_enabled,
      grantSecsMax: jwt.refresh_token_lifetime_human_secs,
    })
  const documentation = openapi.enabled ? issuer + openapi.docs_path : null
  return {
    resources,
    settings,
    database,
    coordination,
    kms,
    sealer,
    clock,
    random,
    metrics,
    webhooks,
    jwt,
    dpop,
    auth,
    challenge,
    server,
    openapi,
    issuer,
    alwaysTwo,
    registry,
    offers,
    captcha,
    gate,
    mailQueue,
    groups,
    documents,
    common,
    isOwnAddress,
    tenancy,
    remoteDocuments,
    clientLogos,
    metadataClientsOf,
    documentation,
  }
}
