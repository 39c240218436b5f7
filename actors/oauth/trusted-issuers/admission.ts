/** Finds out whether a trusted issuer made a token, and for which application it stands. */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Coordination } from '../../../storage/platform/coordination/port.js'
import {
  activeIssuers,
  rulesOfIssuer,
  findRuleTarget,
} from '../../../storage/oauth/trusted-issuers.js'
import type { Database } from '../../../storage/platform/sql.js'
import type { Purpose, Rule, TrustedIssuer } from '../../domain/entities/trusted-issuer.js'
import type { TtlCache } from '../../platform/batching/ttl-cache.js'
import {
  type IssuerJws,
  isIdJagType,
  isSignedByIssuer,
  readIssuerJws,
} from '../../platform/jose/issuer-jws.js'
import type { IssuerKeys, KeySet } from './issuer-keys.js'
import type { StepFailed } from './protocol.js'
import { assertionFault, claimsFault, failed, issuerNames, matchRules } from './validation.js'

const CANDIDATES_MAX = 5

export type AdmissionNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly coordination: Pick<Coordination, 'once' | 'get' | 'put' | 'lock'>
  /** The active issuers of a tenant by the names that a token states. */
  readonly known: TtlCache<readonly TrustedIssuer[]>
  /** True ten times a second for each tenant: an unknown issuer is looked for a second time. */
  readonly mayLookAgain: (tenantId: string) => boolean
  readonly keys: IssuerKeys
  readonly ownIssuer: string
}

/** A token that its issuer made, for this service and this time. */
export type Proven = { readonly issuer: TrustedIssuer; readonly jws: IssuerJws }
export type Judged = Proven & {
  readonly rule: Rule
  /** Scopes of the rule that the target has. */
  readonly scopes: readonly string[]
}
export type Refused = {
  readonly failed: readonly StepFailed[]
  readonly rule?: Rule
  /** The issuer, if it made the token. */
  readonly issuer?: TrustedIssuer
}
export type Judgement = Judged | Refused

/** The steps that do not depend on what the token grants. */
export async function prove(
  needs: AdmissionNeeds,
  tenantId: string,
  assertion: string,
  purpose: Purpose,
): Promise<Proven | Refused> {
  const jws = readIssuerJws(assertion)
  if ('step' in jws) return { failed: [jws] }
  const misused = typeFault(jws, purpose)
  if (misused !== undefined) return { failed: [misused] }
  const issuer = await issuerOf(needs, tenantId, jws, purpose)
  if ('step' in issuer) return { failed: [issuer] }
  const unsigned = await signatureFault(needs, jws, issuer)
  if (unsigned !== undefined) return { failed: [unsigned] }
  const now = { nowSecs: needs.clock.nowSecs(), ownIssuer: needs.ownIssuer }
  const faultOf = purpose === 'workload' ? claimsFault : assertionFault
  const fault = faultOf(jws, issuer, now)
  return fault === undefined ? { issuer, jws } : { failed: [fault], issuer }
}

/** Every step for a token of a workload but the single use of `jti`. */
export async function judge(
  needs: AdmissionNeeds,
  tenantId: string,
  assertion: string,
): Promise<Judgement> {
  const proven = await prove(needs, tenantId, assertion, 'workload')
  if ('failed' in proven) return proven
  const { issuer, jws } = proven
  // Only tokens that the issuer signed come here.
  return needs.database.tenant(tenantId, async (tx) => {
    const rule = matchRules(await rulesOfIssuer(tx, tenantId, issuer.id), jws.claims)
    if ('failed' in rule) return { ...rule, issuer }
    const target = await findRuleTarget(tx, tenantId, rule.clientId)
    if (target === undefined)
      return { failed: [failed('target', 'the application is not active')], rule, issuer }
    const scopes = rule.scopes.filter((scope) => target.scopes.includes(scope))
    return { issuer, rule, jws, scopes }
  })
}

/** Uses up the `jti` of a token. False if it was used before. */
export function useOnce(
  { coordination, clock }: AdmissionNeeds,
  proven: Proven,
): Promise<boolean> | true {
  if (!proven.issuer.requireJti || proven.issuer.kind === 'spiffe') return true
  return coordination.once(...singleUse(proven, clock))
}

/** The key of the `jti` of a token, and for how many seconds the token would be accepted. */
export function singleUse({ issuer, jws }: Proven, clock: Clock): [key: string, ttlSecs: number] {
  const { jti, exp, iat } = jws.claims
  const untilSecs = Math.min(Number(exp), Number(iat) + issuer.maxTokenAgeSecs)
  const ttlSecs = untilSecs - clock.nowSecs() + issuer.clockSkewSecs + 1
  return [`issuer-jti:${issuer.id} ${String(jti)}`, Math.ceil(ttlSecs)]
}

/** A token for people is none for workloads, even where one issuer has both purposes. */
function typeFault({ typ }: IssuerJws, purpose: Purpose): StepFailed | undefined {
  if (isIdJagType(typ) === (purpose === 'identity_assertion')) return undefined
  return purpose === 'workload'
    ? failed('purpose', 'an identity assertion speaks for a person')
    : failed('parse', 'typ must be oauth-id-jag+jwt')
}

/** A token names its issuer. Only the signature shows whether that is true. */
async function issuerOf(
  { known, database, ...needs }: AdmissionNeeds,
  tenantId: string,
  jws: IssuerJws,
  purpose: Purpose,
): Promise<TrustedIssuer | StepFailed> {
  const names = issuerNames(jws.claims, purpose)
  const find = async () => {
    const rows = await known.get(JSON.stringify([tenantId, names]), [tenantId], () =>
      database.tenant(tenantId, (tx) => activeIssuers(tx, tenantId, names)),
    )
    const named = names.flatMap((name) => rows.filter((one) => one.issuer === name))
    return named.find(({ purposes }) => purposes[0] === purpose) ?? named[0]
  }
  let issuer = await find()
  if (issuer === undefined && needs.mayLookAgain(tenantId)) {
    // Another process may have stored it since.
    known.invalidate([tenantId])
    issuer = await find()
  }
  if (issuer === undefined) return failed('issuer', 'the issuer is not trusted, or is disabled')
  if (issuer.purposes[0] !== purpose)
    return failed(
      'purpose',
      `the issuer is trusted for ${issuer.purposes.join()}, not for ${purpose}`,
    )
  return issuer.allowedAlgs.includes(jws.alg)
    ? issuer
    : failed('algorithm', `the issuer may not use ${jws.alg}`)
}

/** Whether a key of the issuer made the signature. */
export async function signatureFault(
  { keys }: Pick<AdmissionNeeds, 'keys'>,
  jws: IssuerJws,
  issuer: TrustedIssuer,
): Promise<StepFailed | undefined> {
  let found = await keys.of(issuer, false)
  if ('unreachable' in found) return failed('key', found.unreachable)
  let candidates = candidatesOf(found, jws)
  if (candidates.length === 0) {
    // The issuer may have rotated its keys since the last fetch.
    found = await keys.of(issuer, true)
    if ('unreachable' in found) return failed('key', found.unreachable)
    candidates = candidatesOf(found, jws)
  }
  if (candidates.length === 0) return failed('key', 'the issuer has no such key')
  for (const key of candidates) if (await isSignedByIssuer(jws, key)) return undefined
  return failed('signature', 'no key of the issuer made the signature')
}

/** A `kid` selects the key. Without one a few are tried, since each costs a verification. */
function candidatesOf(keys: KeySet, { kid, alg }: IssuerJws): KeySet {
  const usable = keys.filter((key) => key[alg] !== undefined)
  const named = usable.filter(
    (key) => kid === undefined || key.kid === undefined || key.kid === kid,
  )
  return named.slice(0, CANDIDATES_MAX)
}
