/**
 * Admits an identity assertion (ID-JAG, draft-ietf-oauth-identity-assertion-authz-grant): for which user it speaks, and what
 * it grants. docs/guides/oauth/identity-assertions.md has the steps in their order.
 */
import { findRuleTarget } from '../../../storage/oauth/trusted-issuers.js'
import { isUuid } from '../../domain/ids.js'
import { ACT_DEPTH_MAX, type ActingParty } from '../../domain/principal.js'
import { isTime } from '../../platform/jose/external-jws.js'
import { type AdmissionNeeds, type Proven, prove, type Refused, singleUse } from './admission.js'
import type { Claims } from './conditions.js'
import type { TrustedIssuerHandler, TrustedIssuerTools } from './needs.js'
import { findPerson, linkPerson } from './people.js'
import type { AdmitIdentityAssertion, Asserted, AssertedSubject, StepFailed } from './protocol.js'
import { recordRefusal } from './refusals.js'
import { isSignedOut } from './sign-out.js'
import { failed, isStored } from './validation.js'

const LIST_MAX = 20
const TEXT_MAX = 2_048
const LEVEL = /^aal([123])$/
const SCOPES = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/

export type ProvenAssertion = Proven & { readonly asserted: Asserted }

/** The steps that need no request: signature, times, audience, and what is granted. */
export async function proveAssertion(
  needs: AdmissionNeeds,
  tenantId: string,
  assertion: string,
): Promise<ProvenAssertion | Refused> {
  const proven = await prove(needs, tenantId, assertion, 'identity_assertion')
  if ('failed' in proven) return proven
  const { issuer, jws } = proven
  const { sub, aud_tenant: here, tenant: there } = jws.claims
  if (!isText(sub)) return { failed: [failed('rule', 'sub is missing')], issuer }
  if (there !== undefined && !isText(there))
    return { failed: [failed('rule', 'tenant must be a text')], issuer }
  if (here !== undefined && here !== tenantId)
    return { failed: [failed('aud', 'aud_tenant is another tenant')], issuer }
  const asserted = readAsserted(jws.claims, issuer.issuer)
  if ('step' in asserted) return { failed: [asserted], issuer }
  const isOver = await isSignedOut(needs, subjectOf(proven))
  return isOver
    ? { failed: [failed('iat', 'the subject signed out after it')], issuer }
    : { ...proven, asserted }
}

export const admitIdentityAssertion: TrustedIssuerHandler<'admitIdentityAssertion'> = async (
  tools,
  message,
  context,
) => {
  const { tenantId, assertion, address } = message
  const proven = await proveAssertion(tools, tenantId, assertion)
  if ('failed' in proven) return refused(tools, proven, context.requestId)
  const { issuer, jws } = proven
  const fault = requestFault(jws.claims, message)
  if (fault !== undefined) return refused(tools, { failed: [fault], issuer }, context.requestId)
  const use = await used(tools, proven, message)
  if (use === 'again') {
    const other = failed('jti', 'the token was used by another client or with another key')
    return refused(tools, { failed: [other], issuer }, context.requestId)
  }
  const found = await findPerson(tools, proven, context)
  if ('step' in found) return refused(tools, { failed: [found], issuer }, context.requestId)
  // After a concurrent request that linked the subject, its user is found.
  const person =
    'sub' in found
      ? found
      : ((await linkPerson(tools, proven, found, address, context)) ??
        (await findPerson(tools, proven, context)))
  if (!('sub' in person)) {
    const lost = 'step' in person ? person : failed('rule', 'the address has another user by now')
    return refused(tools, { failed: [lost], issuer }, context.requestId)
  }
  return {
    tag: 'person_admitted',
    subject: person.sub,
    issuer: issuer.issuer,
    assertedBy: subjectOf(proven),
    repeated: use === 'repeated',
    ...proven.asserted,
  }
}

async function refused(tools: TrustedIssuerTools, why: Refused, requestId: string | undefined) {
  await recordRefusal(tools, why, requestId)
  return { tag: 'not_admitted', step: why.failed[0]!.step } as const
}

/** The client that sent it must be the one that the issuer named, with the key that it named. */
function requestFault(
  { client_id: named, cnf }: Claims,
  { clientId, jkt }: AdmitIdentityAssertion,
): StepFailed | undefined {
  if (named !== clientId) return failed('target', 'client_id is another client')
  if (cnf === undefined) return undefined
  const bound = typeof cnf === 'object' && cnf !== null ? (cnf as Claims)['jkt'] : undefined
  return typeof bound === 'string' && bound === jkt
    ? undefined
    : failed('target', 'cnf is another key than the DPoP proof has')
}

/**
 * The first use of a `jti` binds it to the client and its key. They may send it again until it ends, unless the issuer
 * says `require_jti`. One call of `once` wins.
 */
async function used(
  { coordination, clock }: AdmissionNeeds,
  proven: Proven,
  { clientId, jkt }: AdmitIdentityAssertion,
): Promise<'first' | 'repeated' | 'again'> {
  const [key, ttlSecs] = singleUse(proven, clock)
  const user = Buffer.from(`${clientId} ${jkt ?? ''}`)
  if (await coordination.once(key, ttlSecs)) {
    await coordination.put(key, user, ttlSecs)
    return 'first'
  }
  if (proven.issuer.requireJti) return 'again'
  const first = await coordination.get(key)
  return first !== undefined && user.equals(first) ? 'repeated' : 'again'
}

/** What the assertion grants, or the step that fails. */
function readAsserted(claims: Claims, issuer: string): Asserted | StepFailed {
  const { scope, resource, authorization_details: details, act, acr, amr, auth_time: time } = claims
  if (typeof scope !== 'string' || !SCOPES.test(scope))
    return failed('scope', 'scope is missing or malformed')
  // To ignore them could widen what the issuer granted (RFC 9396).
  if (details !== undefined) return failed('scope', 'authorization_details are not supported')
  const resources = resource === undefined ? [] : [resource].flat()
  if (!resources.every(isText) || resources.length > LIST_MAX)
    return failed('scope', 'resource must be a URI or a list of URIs')
  const actors = readActors(act, issuer)
  if (actors === null) return failed('scope', 'act must be a chain of actors with sub')
  const methods: readonly unknown[] = Array.isArray(amr) ? amr : []
  return {
    scopes: [...new Set(scope.split(' '))],
    resources,
    level: Number(typeof acr === 'string' ? (LEVEL.exec(acr)?.[1] ?? 1) : 1),
    amr: methods.filter(isText).slice(0, LIST_MAX),
    authTimeSecs: isTime(time) ? time : null,
    actors,
  }
}

/** The actors of a delegated assertion. They are known at the issuer alone. */
function readActors(act: unknown, issuer: string): readonly ActingParty[] | null {
  const actors: ActingParty[] = []
  for (let hop = act; hop !== undefined; hop = (hop as Claims)['act']) {
    if (typeof hop !== 'object' || hop === null || actors.length === ACT_DEPTH_MAX) return null
    const { sub, iss = issuer } = hop as Claims
    if (!isText(sub) || !isText(iss)) return null
    actors.push({ sub, subjectType: 'agent', issuer: iss })
  }
  return actors
}

/** What would happen to the assertion of its client. Changes nothing. */
export async function evaluateAssertion(
  tools: TrustedIssuerTools,
  tenantId: string,
  assertion: string,
  context: Parameters<typeof findPerson>[2],
): Promise<ProvenAssertion | Refused> {
  const proven = await proveAssertion(tools, tenantId, assertion)
  if ('failed' in proven) return proven
  const { issuer } = proven
  const clientId = proven.jws.claims['client_id']
  const isKnown =
    isText(clientId) &&
    isUuid(clientId) &&
    (await tools.database.tenant(tenantId, (tx) => findRuleTarget(tx, tenantId, clientId)))
  // A URL is the client_id of a metadata document, which is fetched for a request alone.
  if (!isKnown && !(isText(clientId) && URL.canParse(clientId)))
    return { failed: [failed('target', 'client_id is no active application')], issuer }
  const found = await findPerson(tools, proven, context)
  return 'step' in found ? { failed: [found], issuer } : proven
}

/** `proveAssertion` has checked the claims. */
const subjectOf = ({ issuer, jws: { claims } }: Proven): AssertedSubject => ({
  tenantId: issuer.tenantId,
  issuerId: issuer.id,
  sub: String(claims['sub']),
  tenant: claims['tenant'] === undefined ? null : String(claims['tenant']),
  issuedAtSecs: Number(claims['iat']),
})

const isText = (value: unknown): value is string => isStored(value) && value.length <= TEXT_MAX
