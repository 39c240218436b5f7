/** Evaluates the access policies of a tenant. Every policy that applies must permit. Pure functions. */
import { isAddressWithin } from '../commerce/networks.js'
import { type AccessPolicy, levelOf } from '../entities/access-policy.js'

export type DenialReason = 'network_denied' | 'network_not_allowed' | 'level_too_low'

/** What a person, an agent or an application wants to do. */
export type AccessQuestion = {
  readonly action: 'sign_in' | 'token'
  /** The application or agent. */
  readonly clientId: string
  readonly scopes: readonly string[]
  /** Null where the address is not known: every network condition refuses. */
  readonly address: string | null
  /** The assurance level of a user. Null for agents and services, to which levels do not apply. */
  readonly level: number | null
}

export type PolicyVerdict = {
  readonly policy: Pick<AccessPolicy, 'id' | 'name'>
  readonly reason: DenialReason
}

type Conditions = Omit<AccessPolicy, 'tenantId' | 'createdAt' | 'updatedAt' | 'force'>

/** The policies that refuse, each with its first reason, in the order of the policies. */
export function denials(
  policies: readonly Conditions[],
  question: AccessQuestion,
): readonly PolicyVerdict[] {
  return policies.flatMap((policy) => {
    const reason = applies(policy, question) ? denialOf(policy, question) : null
    return reason === null ? [] : [{ policy: { id: policy.id, name: policy.name }, reason }]
  })
}

/** The assurance level that the policies require of a user. */
export function requiredLevel(
  policies: readonly Conditions[],
  question: Omit<AccessQuestion, 'level' | 'address'>,
): number {
  const levels = policies
    .filter((policy) => applies(policy, question))
    .map((policy) => levelOf(policy.requiredAal) ?? 1)
  return Math.max(1, ...levels)
}

function applies(
  { enabled, actions, clientIds, scopes }: Conditions,
  question: Omit<AccessQuestion, 'level' | 'address'>,
): boolean {
  return (
    enabled &&
    actions.includes(question.action) &&
    (clientIds.length === 0 || clientIds.includes(question.clientId)) &&
    (scopes.length === 0 || scopes.some((scope) => question.scopes.includes(scope)))
  )
}

function denialOf(
  { allowedNetworks, deniedNetworks, requiredAal }: Conditions,
  { address, level }: AccessQuestion,
): DenialReason | null {
  if (deniedNetworks.length > 0 && (address === null || isAddressWithin(address, deniedNetworks)))
    return 'network_denied'
  if (
    allowedNetworks.length > 0 &&
    (address === null || !isAddressWithin(address, allowedNetworks))
  )
    return 'network_not_allowed'
  const required = levelOf(requiredAal)
  return required !== null && level !== null && level < required ? 'level_too_low' : null
}
