/** Access policies at the authorization endpoint: before the sign-in, and for the level that it must reach. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { AssuranceLevel } from '../../../domain/assurance.js'
import { denials, requiredLevel } from '../../../domain/oauth/access-policies.js'
import type { InteractionNeeds, PendingRequest } from './pending-request.js'

/** 'denied', or the least assurance level of the sign-in. The audit log names the policy. */
export async function accessOf(
  { accessPolicies }: Pick<InteractionNeeds, 'accessPolicies'>,
  { client, request, address }: PendingRequest,
  { requestId }: MessageContext,
): Promise<'denied' | AssuranceLevel> {
  if (accessPolicies === null) return 1
  const { tenantId } = client
  const policies = await accessPolicies.inForce(tenantId)
  if (policies.length === 0) return 1
  const clientId = client.metadataUrl ?? client.id
  const asked = { action: 'sign_in', clientId, scopes: request.scopes } as const
  // The level is not a reason to refuse here: the sign-in raises it.
  const question = { ...asked, address, level: null }
  const [verdict] = denials(policies, question)
  if (verdict !== undefined) {
    await accessPolicies.record({ tenantId, question, verdict, subject: null, requestId })
    return 'denied'
  }
  return requiredLevel(policies, asked) as AssuranceLevel
}
