/** Manages which applications get identity assertions for which authorization servers. */
import { defineActor } from '../../../../runtime/kernel/actor.js'
import { resourceKey } from '../../../../storage/oauth/api-resources.js'
import { isAudienceClaimed } from '../../../../storage/oauth/audiences.js'
import {
  findPolicyClient,
  identityAssertionPolicyTable,
  isPolicyTaken,
} from '../../../../storage/oauth/identity-assertion-policies.js'
import { httpsUrl } from '../../../domain/entities/https-url.js'
import {
  identityAssertionPolicy,
  type IdentityAssertionPolicyDraft,
  type IdentityAssertionPolicyMembers,
} from '../../../domain/entities/identity-assertion-policy.js'
import { invalid, type MemberInvalid } from '../../../domain/entities/messages.js'
import { isUuid } from '../../../domain/ids.js'
import { entityHandlers } from '../../../platform/entity-handlers.js'
import { inTenant } from '../../../platform/in-tenant.js'
import {
  identityAssertionPolicies,
  type IdentityAssertionPoliciesProtocol,
  type PolicyRefused,
} from './protocol.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

const POLICIES_MAX = 500
/** scope-token of RFC 6749 section 3.3. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/

type PoliciesNeeds = WriteNeeds & {
  readonly isOwnAddress: (uri: string) => boolean
}

export const identityAssertionPoliciesActor = defineActor<
  IdentityAssertionPoliciesProtocol,
  PoliciesNeeds
>({
  address: identityAssertionPolicies,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 64 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: (needs) =>
    entityHandlers<IdentityAssertionPolicyMembers, PolicyRefused>(needs, {
      entity: identityAssertionPolicy,
      table: identityAssertionPolicyTable,
      most: POLICIES_MAX,
      faultOf: (draft) => draftFault(draft, needs.isOwnAddress),
      foreignFault: ({ clientId, audience }, { principal: { tenantId } }, context) =>
        inTenant(needs.database, tenantId, context, async (tx) => {
          if (audience !== undefined && (await isAudienceClaimed(tx, audience)))
            return { tag: 'conflict' }
          if (clientId === undefined || !isUuid(clientId)) return undefined
          const isConfidential = await findPolicyClient(tx, tenantId, clientId)
          return isConfidential === true ? undefined : { tag: 'client_unknown' }
        }),
      isConflict: isPolicyTaken,
      auditOf: ({ clientId, audience }) => ({ client_id: clientId, audience }),
      powersOf: ({ targetClientId, resources, scopes }) => ({
        target_client_id: targetClientId,
        resources,
        scopes,
      }),
    }),
})

function draftFault(
  { audience, resources, scopes }: IdentityAssertionPolicyDraft,
  isOwnAddress: PoliciesNeeds['isOwnAddress'],
): MemberInvalid | undefined {
  if (httpsUrl(audience, { http: 'of loopback hosts' }) === null)
    return invalid('/audience', 'The audience must be an https URL without query and fragment.')
  if (isOwnAddress(audience)) return invalid('/audience', 'The audience must be another server.')
  const resource = resources.findIndex((one) => resourceKey(one) === null)
  if (resource >= 0)
    return invalid(`/resources/${resource}`, 'It must be an absolute https URI (RFC 8707).')
  const scope = scopes.findIndex((one) => !SCOPE.test(one))
  return scope < 0 ? undefined : invalid(`/scopes/${scope}`, 'It must be a scope token (RFC 6749).')
}
