/** What the listeners of a process have in common: the part of the settings that the HTTP pipeline reads. */
import { tokens } from '../../../actors/oauth/tokens/protocol.js'
import { policiesWith } from '../../../actors/operations/rate-limits/protocol.js'
import type { FrontDoorOptions } from '../../../gateway/front-door.js'
import type { EgressSizes } from '../../../gateway/routes/vault/egress.js'
import type { Settings } from '../configuration/settings.js'
import type { System } from '../../kernel/system.js'

type FromSettings = Pick<
  FrontDoorOptions,
  | 'server'
  | 'issuer'
  | 'policies'
  | 'i18n'
  | 'admin'
  | 'billing'
  | 'imageOrigin'
  | 'sampleRatio'
  | 'applicationOrigins'
>

/** The options of a listener, from the settings and the actors of its thread. */
export function frontDoorOptions(settings: Settings, system: Pick<System, 'ref'>): FromSettings {
  return {
    server: settings.server,
    issuer: settings.oidc.issuer_url,
    policies: policiesWith(settings.auth),
    i18n: settings.i18n,
    admin: settings.admin,
    billing: settings.billing.enabled,
    imageOrigin: assetOrigin(settings),
    sampleRatio: settings.telemetry.sample_ratio,
    applicationOrigins: {
      lists: async (origin, clientId) => {
        const answer = await system.ref(tokens).originListed({ origin, clientId })
        return answer.tag === 'listed'
      },
    },
  }
}

/** Bounds of the bodies of the egress proxy. */
export function egressSizesOf({ vault }: Settings): EgressSizes {
  return { jsonBytes: vault.egress_json_max_bytes, bodyBytes: vault.egress_body_max_bytes }
}

/** The origin of the object store's images. Undefined if the service serves them, or without images. */
function assetOrigin({ tenant_assets: assets }: Settings): string | undefined {
  const { enabled, folder, public_base_url: base } = assets
  return enabled && folder === undefined && base !== undefined ? new URL(base).origin : undefined
}
