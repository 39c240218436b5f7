/** Checks that a token is used at its own tenant's host (docs/reference/http.md, Hosts and proxies). */
import type { Principal } from '../../actors/domain/principal.js'
import {
  namesOtherTenant,
  type TenantsProtocol,
} from '../../actors/identity/users/tenants/protocol.js'
import type { ActorRef, AskOptions } from '../../runtime/kernel/actor.js'
import { withoutPort } from './hosts.js'
import type { Problem } from '../response/problems.js'

/** The refusal of a token at another tenant's host, otherwise null. */
export type TokenHostCheck = (
  host: string,
  principal: Pick<Principal, 'tenantId'>,
  options: AskOptions,
) => Promise<Problem | null> | null

export const WRONG_TENANT_HOST = {
  name: 'forbidden',
  reason: 'token_of_other_tenant',
  detail: 'The token is for another tenant than this host.',
} as const satisfies Problem

export function tokenHostCheck(
  tenants: ActorRef<TenantsProtocol> | undefined,
  baseDomain: string,
): TokenHostCheck {
  const suffix = `.${baseDomain.toLowerCase()}`
  return (host, { tenantId }, options) => {
    // Nearly all requests use the host of the issuer and need no look-up.
    const name = withoutPort(host)
    if (tenants === undefined || !name.endsWith(suffix)) return null
    return tenants
      .resolve({ host: name }, options)
      .then((named) => (namesOtherTenant(named, tenantId) ? WRONG_TENANT_HOST : null))
  }
}
