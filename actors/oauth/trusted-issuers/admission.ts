/** Finds out for which application a token of a trusted issuer stands. */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Coordination } from '../../../storage/platform/coordination/port.js'
import {
  activeIssuers,
  rulesOfIssuer,
  findRuleTarget,
} from '../../../storage/oauth/trusted-issuers.js'
import type { Database } from '../../../storage/platform/sql.js'
import type { Rule, TrustedIssuer } from '../../domain/entities/trusted-issuer.js'
import type { TtlCache } from '../../platform/batching/ttl-cache.js'
import { type IssuerJws, isSignedByIssuer, readIssuerJws } from '../../platform/jose/issuer-jws.js'
import type { IssuerKeys, KeySet } from './issuer-keys.js'
import type { StepFailed } from './protocol.js'
import { claimsFault, failed, issuerNames, matchRules } from './validation.js'

const CANDIDATES_MAX = 5

export type AdmissionNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly coordination: Pick<Coordination, 'once'>
  /** The active issuers of a tenant, so that a token of an unknown issuer costs no statement. */
  readonly known: TtlCache<readonly TrustedIssuer[]>
  /** True ten times a second for each tenant, so that tokens of unknown issuers cost no more statements. */
  readonly mayLookAgain: (tenantId: string) => boolean
  readonly keys: IssuerKeys
  readonly ownIssuer: string
}

export type Judged = {
  readonly issuer: TrustedIssuer
  readonly rule: Rule
  readonly jws: IssuerJws
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

/** Every step but the single use of `jti`. */
export async function judge(
  needs: AdmissionNeeds,
  tenantId: string,
  assertion: string,
): Promise<Judgement> {
  const jws = readIssuerJws(assertion)
  if ('step' in jws) return { failed: [jws] }
  const issuer = await issuerOf(needs, tenantId, jws)
  if ('step' in issuer) return { failed: [issuer] }
  const unsigned = await signatureFault(needs, jws, issuer)
  if (unsigned !== null) return { failed: [unsigned] }
  const now = { nowSecs: needs.clock.nowSecs(), ownIssuer: needs.ownIssuer }
  const fault = claimsFault(jws, issuer, now)
  if (fault !== null) return { failed: [fault], issuer }
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
  { issuer, jws }: Judged,
): Promise<boolean> | true {
  if (!issuer.requireJti || issuer.kind === 'spiffe') return true
  const { jti, exp, iat } = jws.claims
  const untilSecs = Math.min(Number(exp), Number(iat) + issuer.maxTokenAgeSecs)
  const ttlSecs = untilSecs - clock.nowSecs() + issuer.clockSkewSecs + 1
  return coordination.once(`issuer-jti:${issuer.id} ${String(jti)}`, Math.ceil(ttlSecs))
}

/** A token names its issuer. Only the signature shows whether that is true. */
async function issuerOf(
  { known, database, ...needs }: AdmissionNeeds,
  tenantId: string,
  jws: IssuerJws,
): Promise<TrustedIssuer | StepFailed> {
  const names = issuerNames(jws.claims)
  const find = async () => {
    const rows = await known.get(tenantId, [tenantId], () =>
      database.tenant(tenantId, (tx) => activeIssuers(tx, tenantId)),
    )
    const named = names.map((name) => rows.find((one) => one.issuer === name))
    return named.find((one) => one !== undefined)
  }
  let issuer = await find()
  if (issuer === undefined && needs.mayLookAgain(tenantId)) {
    // Another process may have stored it since.
    known.invalidate([tenantId])
    issuer = await find()
  }
  if (issuer === undefined) return failed('issuer', 'the issuer is not trusted, or is disabled')
  return issuer.allowedAlgs.includes(jws.alg)
    ? issuer
    : failed('algorithm', `the issuer may not use ${jws.alg}`)
}

async function signatureFault(
  { keys }: AdmissionNeeds,
  jws: IssuerJws,
  issuer: TrustedIssuer,
): Promise<StepFailed | null> {
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
  for (const key of candidates) if (await isSignedByIssuer(jws, key)) return null
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
