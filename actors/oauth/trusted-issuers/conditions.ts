/** Conditions of rules on the claims of a token, and what a rule must pin (docs/guides/oauth/workload-identity.md). */
import type { RuleCondition, TrustedIssuer } from '../../domain/entities/trusted-issuer.js'

export type Claims = Readonly<Record<string, unknown>>

/**
 * The claim that an issuer never gives to another workload. Names of repositories, projects and service accounts can be
 * given again after a deletion, their ids not.
 */
export const PINNED: Readonly<Record<TrustedIssuer['kind'], string>> = {
  oidc: 'sub',
  static_jwks: 'sub',
  spiffe: 'sub',
  kubernetes: String.raw`kubernetes\.io.serviceaccount.uid`,
  github_actions: 'repository_id',
  gitlab: 'project_id',
}

/** The first fault of the conditions of a rule: the index of the condition, and why. */
export function conditionFault(
  conditions: readonly RuleCondition[],
): { readonly index: number; readonly detail: string } | undefined {
  for (const [index, { claim, op, value }] of conditions.entries()) {
    if (pathOf(claim).some((name) => name === ''))
      return { index, detail: 'claim must be names that dots separate' }
    if (Array.isArray(value) !== (op === 'in'))
      return { index, detail: op === 'in' ? 'in needs a list' : `${op} needs one value` }
    if (op !== 'glob') continue
    if (typeof value !== 'string') return { index, detail: 'glob needs a text' }
    if (value.split('/').some((segment) => segment.includes('*') && segment !== '*'))
      return { index, detail: 'an asterisk of a glob must be a whole segment between slashes' }
  }
  return undefined
}

/** True if the rule pins what `PINNED` says. The path of a SPIFFE ID may end with an asterisk: its trust domain is pinned. */
export function isPinned(
  { kind, spiffe }: Pick<TrustedIssuer, 'kind' | 'spiffe'>,
  conditions: readonly RuleCondition[],
): boolean {
  const path = pathOf(PINNED[kind]).join('\0')
  return conditions.some(({ claim, op, value }) => {
    if (pathOf(claim).join('\0') !== path) return false
    if (kind !== 'spiffe') return op !== 'glob' && !isEmpty(value)
    const ids = [value].flat()
    return ids.every((id) => String(id).startsWith(`spiffe://${spiffe?.trust_domain}/`))
  })
}

/** The condition that the claims do not meet. Undefined if they meet all of them. */
export function unmet(
  conditions: readonly RuleCondition[],
  claims: Claims,
): RuleCondition | undefined {
  return conditions.find((condition) => !holds(condition, claimAt(claims, condition.claim)))
}

/** The value of a claim. Undefined if the token does not have it. */
export function claimAt(claims: Claims, claim: string): unknown {
  let at: unknown = claims
  for (const name of pathOf(claim)) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined
    at = (at as Claims)[name]
  }
  return at
}

/** One of the entries of a list must hold: `groups`. A subject is no list (RFC 7519 section 4.1.2). */
function holds({ claim: name, op, value }: RuleCondition, claim: unknown): boolean {
  if (Array.isArray(claim) && name !== 'sub')
    return claim.some((entry) => isScalar(entry) && meets(op, value, entry))
  return isScalar(claim) && meets(op, value, claim)
}

function meets(op: RuleCondition['op'], value: RuleCondition['value'], claim: Scalar): boolean {
  const text = String(claim)
  return op === 'glob'
    ? matchesGlob(String(value), text)
    : [value].flat().some((one) => String(one) === text)
}

function matchesGlob(glob: string, text: string): boolean {
  const wanted = glob.split('/')
  const segments = text.split('/')
  const isOpen = wanted.length > 1 && wanted.at(-1) === '*'
  if (isOpen ? segments.length < wanted.length : segments.length !== wanted.length) return false
  return wanted.every((segment, index) =>
    segment === '*' ? segments[index] !== '' : segment === segments[index],
  )
}

type Scalar = string | number | boolean
const isScalar = (value: unknown): value is Scalar =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
const isEmpty = (value: RuleCondition['value']) => [value].flat().includes('')

/** The names of a path: `a\.b.c` as `a.b` and `c`. */
function pathOf(claim: string): readonly string[] {
  return claim.split(/(?<!\\)\./).map((name) => name.replaceAll(String.raw`\.`, '.'))
}
