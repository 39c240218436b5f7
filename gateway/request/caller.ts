/** The caller of an authenticated route, as messages name it. */
import type { Caller } from '../../actors/domain/audit.js'
import type { Principal } from '../../actors/domain/principal.js'

export const callerOf = (request: {
  readonly principal: Principal
  readonly clientAddress: string
}): Caller => ({ principal: request.principal, address: request.clientAddress })
