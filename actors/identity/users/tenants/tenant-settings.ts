/** Settings that administrators of an environment control: read, changed, and announced to every process. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { appendAudit } from '../../../../storage/operations/audit.js'
import {
  findTenantWithSettings,
  type TenantWithSettings,
  updateTenantSettings,
} from '../../../../storage/identity/tenants.js'
import { audited } from '../../../domain/audit.js'
import { payeeFault } from '../../../domain/commerce/evm-addresses.js'
import { changedName, refusedName } from '../../../domain/shown-names.js'
import type {
  AnonymousSignIn,
  Branding,
  ChangeSettings,
  ClientIdMetadataPolicy,
  NoEnvironment,
  SettingInvalid,
  SettingsFound,
  SignUpPolicy,
  SocialSignIn,
  TenantSettingsRecord,
} from './protocol.js'
import { inTenant } from '../../../platform/in-tenant.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

const CLIENT_ID_METADATA: ClientIdMetadataPolicy = {
  enabled: true,
  allow: ['*'],
  deny: [],
  requireAuth: false,
  maxNewClientsPerHour: 100,
}
const NO_ENVIRONMENT = { tag: 'no_environment' } as const

type TenantSettingsNeeds = WriteNeeds & {
  /** Called on a change, so that this process sees it immediately. Other processes are notified by the commit. */
  readonly changed: (tenantId: string) => void
}

export function tenantSettings({ database, clock, random, changed }: TenantSettingsNeeds) {
  return {
    async readTenantSettings(
      { tenantId }: { readonly tenantId: string },
      context: MessageContext,
    ): Promise<SettingsFound | NoEnvironment> {
      const row = await inTenant(database, tenantId, context, (tx) =>
        findTenantWithSettings(tx, tenantId),
      )
      return row === undefined || row.controlPlane
        ? NO_ENVIRONMENT
        : { tag: 'found', settings: settingsOf(row) }
    },

    async changeTenantSettings(
      { caller, change }: ChangeSettings,
      { signal, requestId }: MessageContext,
    ): Promise<SettingsFound | SettingInvalid | NoEnvironment> {
      const { tenantId } = caller.principal
      for (const [network, address] of Object.entries(change.x402PayTo ?? {})) {
        const detail = await payeeFault(address)
        if (detail !== undefined)
          return { tag: 'invalid', pointer: `/x402_pay_to/${network}`, detail }
      }
      const { admitAgents, directAgentRegistration, credentialIssuerEnabled } = change
      const now = clock.now()
      const updated = await inTenant(database, tenantId, { signal }, async (tx) => {
        let { branding } = change
        const asked = branding?.name
        if (asked !== undefined) {
          const before = await findTenantWithSettings(tx, tenantId)
          const name = changedName(asked, before && settingsOf(before).branding.name)
          if (name === null) return refusedName('/branding/name')
          branding = { ...branding, name }
        }
        const settings = storedSettings({ ...change, branding })
        const rows = await updateTenantSettings(
          tx,
          tenantId,
          { admitAgents, directAgentRegistration, credentialIssuerEnabled, settings },
          now,
        )
        if (rows === undefined) return undefined
        const after = settingsOf(rows.after)
        appendAudit(tx, [
          audited(caller, {
            id: random.uuid(),
            tenantId,
            type: 'tenant.settings.changed',
            occurredAt: now,
            resource: { type: 'tenant', id: tenantId },
            requestId,
            data: { before: wire(settingsOf(rows.before)), after: wire(after) },
          }),
        ])
        return { tag: 'found', settings: after } as const
      })
      if (updated?.tag === 'found') changed(tenantId)
      return updated ?? NO_ENVIRONMENT
    },
  }
}

function settingsOf(row: TenantWithSettings): TenantSettingsRecord {
  const { admitAgents, directAgentRegistration, credentialIssuerEnabled, settings } = row
  const stored = settings as StoredSettings
  const { branding, session, social, checkout_redirect_hosts: hosts } = stored
  return {
    admitAgents,
    directAgentRegistration,
    credentialIssuerEnabled,
    checkoutRedirectHosts: hosts ?? [],
    x402PayTo: stored.x402_pay_to ?? {},
    logoutRevokesOffline: stored.logout_revokes_offline ?? false,
    idJag: { includeAct: stored.id_jag?.include_act ?? false },
    clientIdMetadata: { ...CLIENT_ID_METADATA, ...stored.client_id_metadata },
    branding: {
      name: branding?.name,
      color: branding?.color,
      logo: branding?.logo,
      locale: branding?.locale,
      links: branding?.links,
      texts: branding?.texts,
    },
    session: { idleSecs: session?.idle_secs, absoluteSecs: session?.absolute_secs },
    social: { enabled: social?.enabled, provision: social?.provision },
    signUp: { enabled: stored.sign_up?.enabled },
    anonymous: { enabled: stored.anonymous?.enabled },
  }
}

/** As stored in the row, where the pages read them (actors/domain/tenants/branding.ts). */
type StoredSettings = {
  readonly checkout_redirect_hosts?: readonly string[]
  readonly x402_pay_to?: Readonly<Record<string, string>>
  readonly logout_revokes_offline?: boolean
  readonly id_jag?: { readonly include_act: boolean }
  readonly client_id_metadata?: ClientIdMetadataPolicy
  readonly branding?: Branding
  readonly social?: SocialSignIn
  readonly sign_up?: SignUpPolicy
  readonly anonymous?: AnonymousSignIn
  readonly session?: {
    readonly idle_secs?: number | undefined
    readonly absolute_secs?: number | undefined
  }
}

function storedSettings(change: ChangeSettings['change']): StoredSettings {
  const { branding, session, social, checkoutRedirectHosts: hosts } = change
  const { x402PayTo, logoutRevokesOffline, idJag, clientIdMetadata, anonymous } = change
  return {
    ...(hosts === undefined ? {} : { checkout_redirect_hosts: hosts }),
    ...(x402PayTo === undefined ? {} : { x402_pay_to: x402PayTo }),
    ...(logoutRevokesOffline === undefined ? {} : { logout_revokes_offline: logoutRevokesOffline }),
    ...(idJag === undefined ? {} : { id_jag: { include_act: idJag.includeAct } }),
    ...(clientIdMetadata === undefined ? {} : { client_id_metadata: clientIdMetadata }),
    ...(branding === undefined ? {} : { branding }),
    ...(social === undefined ? {} : { social }),
    ...(change.signUp === undefined ? {} : { sign_up: change.signUp }),
    ...(anonymous === undefined ? {} : { anonymous }),
    ...(session === undefined
      ? {}
      : { session: { idle_secs: session.idleSecs, absolute_secs: session.absoluteSecs } }),
  }
}

/** As in the API: the audit event uses the same names. */
function wire(settings: TenantSettingsRecord): Record<string, unknown> {
  const { name, color, logo, locale, links, texts } = settings.branding
  const { idleSecs, absoluteSecs } = settings.session
  return {
    admit_agents: settings.admitAgents,
    direct_agent_registration: settings.directAgentRegistration,
    credential_issuer_enabled: settings.credentialIssuerEnabled,
    checkout_redirect_hosts: settings.checkoutRedirectHosts,
    x402_pay_to: settings.x402PayTo,
    logout_revokes_offline: settings.logoutRevokesOffline,
    id_jag: { include_act: settings.idJag.includeAct },
    client_id_metadata: {
      enabled: settings.clientIdMetadata.enabled,
      allow: settings.clientIdMetadata.allow,
      deny: settings.clientIdMetadata.deny,
      require_auth: settings.clientIdMetadata.requireAuth,
      max_new_clients_per_hour: settings.clientIdMetadata.maxNewClientsPerHour,
    },
    // The picture itself is too large for an audit record. Only its presence is recorded.
    branding: {
      name: name ?? null,
      color: color ?? null,
      logo: logo !== undefined,
      locale: locale ?? null,
      links: links ?? [],
      texts: texts ?? {},
    },
    session: { idle_secs: idleSecs ?? null, absolute_secs: absoluteSecs ?? null },
    social: {
      enabled: settings.social.enabled ?? null,
      provision: settings.social.provision ?? null,
    },
    sign_up: { enabled: settings.signUp.enabled ?? null },
    anonymous: { enabled: settings.anonymous.enabled ?? null },
  }
}
