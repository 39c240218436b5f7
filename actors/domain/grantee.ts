/** Whose grants count for a principal. */
import type { Principal } from './principal.js'

/** The agent that acts, and the delegation under which it does. */
export function granteeOf({ actors, delegationId, subject, subjectType }: Principal): {
  agentId: string | null
  delegationId: string | null
} {
  const acting = actors[0] ?? { sub: subject, subjectType }
  return { agentId: acting.subjectType === 'agent' ? acting.sub : null, delegationId }
}
