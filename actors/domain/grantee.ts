/** The grantee whose credential grants apply to a principal. */
import type { Principal } from './principal.js'

/** The acting agent and its delegation. */
export function granteeOf({ actors, delegationId, subject, subjectType }: Principal): {
  agentId: string | null
  delegationId: string | null
  person: string | null
} {
  const person = actors.length > 0 && subjectType === 'human' ? subject : null
  const acting = actors[0] ?? { sub: subject, subjectType }
  return { agentId: acting.subjectType === 'agent' ? acting.sub : null, delegationId, person }
}
