/** Whether a token is used where it belongs. decisions.md 0 (tenant resolution), 21 (token and host). */
import type { Principal } from '../../actors/domain/principal.js'
import { namesAnother, type TenantsProtocol } from '../../actors/identity/tenants/protocol.js'
import type { ActorRef, AskOptions } from '../../runtime/kernel/actor.js'
import { withoutPort } from './hosts.js'
import type { Problem } from '../response/problems.js'

/** The refusal of a token that the host does not fit; null where it does. */
export type TokenHostCheck = (
  host: string,
  principal: Pick<Principal, 'tenantId'>,
  options: AskOptions,
) => Promise<Problem | null> | null

export const WRONG_TENANT_HOST = {
  name: 'forbidden',
  detail: 'The token is for another tenant than this host names.',
} as const satisfies Problem

export function tokenHostCheck(
  tenants: ActorRef<TenantsProtocol> | undefined,
  baseDomain: string,
): TokenHostCheck {
  const suffix = `.${baseDomain.toLowerCase()}`
  return (host, { tenantId }, options) => {
    // Nearly every request comes to the one address of the service: nobody is asked then.
    const name = withoutPort(host)
    if (tenants === undefined || !name.endsWith(suffix)) return null
    return tenants
      .ask('resolve', { host: name }, options)
      .then((named) => (namesAnother(named, tenantId) ? WRONG_TENANT_HOST : null))
  }
}
