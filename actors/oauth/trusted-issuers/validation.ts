/** The steps of validation of a token of a trusted issuer, in their order (docs/guides/oauth/workload-identity.md). */
import type {
  Purpose,
  RuleCondition,
  Rule,
  TrustedIssuer,
} from '../../domain/entities/trusted-issuer.js'
import { isTime } from '../../platform/jose/external-jws.js'
import type { IssuerJws } from '../../platform/jose/issuer-jws.js'
import { claimAt, type Claims, unmet } from './conditions.js'
import type { Step, StepFailed } from './protocol.js'

/** A `jti` is stored until its token expires. */
const ID_CHARACTERS_MAX = 256
const SHOWN_CHARACTERS_MAX = 100

export const failed = (step: Step, detail: string): StepFailed => ({ step, detail })

/** As the schema of an issuer. */
const NAME_CHARACTERS_MAX = 512

/** True for a text that PostgreSQL can store and look for, also within JSON. */
export const isStored = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && !/\0|\p{Surrogate}/u.test(value)

/** The names under which the issuer of a token can be registered. The signature decides whether it made the token. */
export function issuerNames({ iss, sub }: Claims, purpose: Purpose): readonly string[] {
  const isWorkload = purpose === 'workload' && typeof sub === 'string'
  const domain = isWorkload ? /^spiffe:\/\/[^/]+/.exec(sub)?.[0] : undefined
  return [iss, domain].filter(
    (name): name is string => isStored(name) && name.length <= NAME_CHARACTERS_MAX,
  )
}

/** The first fault of the times and the audience. Undefined if they are right. */
export function claimsFault(
  { claims }: IssuerJws,
  issuer: TrustedIssuer,
  { nowSecs, ownIssuer }: { readonly nowSecs: number; readonly ownIssuer: string },
): StepFailed | undefined {
  const { exp, nbf, iat, jti } = claims
  const skew = issuer.clockSkewSecs
  if (!isTime(exp)) return failed('exp', 'exp is missing: a token without an end is refused')
  if (exp <= nowSecs - skew) return failed('exp', `the token expired at ${exp}, it is ${nowSecs}`)
  if (nbf !== undefined && (!isTime(nbf) || nbf > nowSecs + skew))
    return failed('nbf', 'the token is not valid yet')
  // A JWT-SVID may have none: its lifetime is bound instead.
  const isSpiffe = issuer.kind === 'spiffe'
  if (iat === undefined ? !isSpiffe : !isTime(iat) || iat > nowSecs + skew)
    return failed('iat', 'iat is missing, or in the future')
  const age = isTime(iat) ? nowSecs - iat : exp - nowSecs
  if (age > issuer.maxTokenAgeSecs + skew)
    return failed('iat', `the token is older than ${issuer.maxTokenAgeSecs} seconds`)
  const audience = audienceFault(claims, issuer, ownIssuer)
  if (audience !== undefined) return audience
  if (!issuer.requireJti || isSpiffe) return undefined
  return typeof jti === 'string' && jti !== '' && jti.length <= ID_CHARACTERS_MAX
    ? undefined
    : failed('jti', `jti must be a text of 1 to ${ID_CHARACTERS_MAX} characters`)
}

const ASSERTION_AGE_SECS_MAX = 600
const ASSERTION_SKEW_SECS_MAX = 60
const ASSERTION_LIFETIME_SECS_MAX = 3_600

/** The first fault of the times, the audience and the members of an ID-JAG. Undefined if they are right. */
export function assertionFault(
  jws: IssuerJws,
  issuer: TrustedIssuer,
  now: { readonly nowSecs: number; readonly ownIssuer: string },
): StepFailed | undefined {
  const { iss, aud, exp, iat } = jws.claims
  // Who asks for its own assertions would get around the policies of both tenants.
  if (iss === now.ownIssuer) return failed('issuer', 'this service is the issuer itself')
  const strict = {
    ...issuer,
    audiences: [now.ownIssuer],
    maxTokenAgeSecs: Math.min(issuer.maxTokenAgeSecs, ASSERTION_AGE_SECS_MAX),
    clockSkewSecs: Math.min(issuer.clockSkewSecs, ASSERTION_SKEW_SECS_MAX),
    requireJti: true,
  }
  const fault = claimsFault(jws, strict, now)
  if (fault !== undefined) return fault
  if ([aud].flat().length !== 1) return failed('aud', 'aud must be one value')
  return Number(exp) - Number(iat) > ASSERTION_LIFETIME_SECS_MAX
    ? failed('exp', `the token lasts longer than ${ASSERTION_LIFETIME_SECS_MAX} seconds`)
    : undefined
}

function audienceFault(
  { aud }: Claims,
  { audiences, kind }: TrustedIssuer,
  ownIssuer: string,
): StepFailed | undefined {
  const accepted = audiences.length > 0 ? audiences : [ownIssuer, `${ownIssuer}/`]
  const stated: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  // A JWT-SVID for several audiences could be presented by each of them to the others.
  if (kind === 'spiffe' && stated.length !== 1)
    return failed('aud', 'aud of a JWT-SVID must be one value')
  return stated.some((one) => accepted.includes(one as string))
    ? undefined
    : failed('aud', `aud is ${shown(aud)}: it must be ${accepted.join(' or ')}`)
}

/** The first rule that the claims meet, or what each rule misses. */
export function matchRules(
  rules: readonly Rule[],
  claims: Claims,
): Rule | { readonly failed: readonly StepFailed[] } {
  const misses: StepFailed[] = []
  for (const rule of rules) {
    const condition = unmet(rule.conditions, claims)
    if (condition === undefined) return rule
    misses.push(failed('rule', missOf(rule, condition, claims)))
  }
  return { failed: misses.length > 0 ? misses : [failed('rule', 'the issuer has no rule')] }
}

function missOf({ name }: Rule, { claim, op, value }: RuleCondition, claims: Claims): string {
  const stated = claimAt(claims, claim)
  const is = stated === undefined ? 'is missing' : `is ${shown(stated)}`
  return `${name}: ${claim} ${is}, and the rule says ${op} ${shown(value)}`
}

const shown = (value: unknown) =>
  (JSON.stringify(value) ?? 'missing').slice(0, SHOWN_CHARACTERS_MAX)
