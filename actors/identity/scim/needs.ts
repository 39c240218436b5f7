/** What the handlers of SCIM get. */
import type { Handler } from '../../../runtime/kernel/actor.js'
import type { ScimTokenRow } from '../../../storage/identity/scim-tokens.js'
import { ttlCache } from '../../platform/batching/ttl-cache.js'
import { type InvitationNeeds, invitationMessages } from '../../platform/people/invitations.js'
import type { ScimProtocol } from './protocol.js'
import { scimProvisioning } from './provisioning.js'

export type ScimNeeds = InvitationNeeds & {
  /** The URL of the documentation, or null. */
  readonly documentation: string | null
  /** `scim.max_results`. */
  readonly maxResults: number
  /** `scim.groups_enabled`. */
  readonly groups: boolean
}

export type ScimTools = ReturnType<typeof scimTools>

export const scimTools = (needs: ScimNeeds) => ({
  ...needs,
  base: `${needs.issuer}/scim/v2`,
  messages: invitationMessages(needs),
  provisioning: scimProvisioning(needs),
  /** A deleted token is refused here immediately, and within a second in other processes. */
  knownTokens: ttlCache<ScimTokenRow | undefined>(needs.clock),
})

export type Handling<K extends keyof ScimProtocol> = Handler<ScimTools, ScimProtocol, K>
