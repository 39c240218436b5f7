/** Bounds the sign-ins that wait for the providers of tenants: a silent one does not hold the places of the others. */
import {
  FairShare,
  inPlace,
  type ShareCounts,
} from '../../../../../runtime/kernel/fairness/fair-share.js'
import type { TenantGroups } from '../../../../platform/tenant-groups.js'
import type { UpstreamClient, UpstreamFault } from './client.js'
import type { Provider } from './providers.js'

/** Sign-ins of an actor that run concurrently. */
export const SIGN_INS_MAX = 256
/** Those that wait for the provider of a tenant. The others are for the providers of the deployment. */
const WAITING_MAX = 192
const WAITING_PER_TENANT_MAX = 24

const BUSY: UpstreamFault = { tag: 'fault', fault: 'unavailable', detail: 'share_exhausted' }

export function fairClient(
  client: UpstreamClient,
  groups: Pick<TenantGroups, 'of'>,
  counts: ShareCounts,
): UpstreamClient {
  const levels = [{ name: 'tenant', max: WAITING_PER_TENANT_MAX }]
  const places = new FairShare({ resource: 'provider_calls', total: WAITING_MAX, levels, counts })
  async function within<T>({ tenantId }: Provider, run: () => Promise<T>) {
    if (tenantId === null) return run()
    return inPlace<T | UpstreamFault>(places, tenantId, await groups.of(tenantId), BUSY, run)
  }
  return {
    authorizationUrl: (provider, request, ask) =>
      within(provider, () => client.authorizationUrl(provider, request, ask)),
    logout: (provider, token) => within(provider, () => client.logout(provider, token)),
    securityEvent: (provider, token) =>
      within(provider, () => client.securityEvent(provider, token)),
    finish: (provider, request, parameters) =>
      within(provider, () => client.finish(provider, request, parameters)),
  }
}
