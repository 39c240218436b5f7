/**
 * Token exchange for an identity assertion (ID-JAG, draft-ietf-oauth-identity-assertion-authz-grant): the application of a
 * user gets an assertion for another authorization server, as a policy of the tenant says
 * (docs/guides/oauth/identity-assertions.md). The subject token is an ID token or refresh token of the application, or a
 * delegated access token of an agent for it.
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { DependencyUnavailable } from '../../../../runtime/kernel/dependency.js'
import { findPerson } from '../../../../storage/identity/tenant-users.js'
import { resourceKey } from '../../../../storage/oauth/api-resources.js'
import { isAudienceClaimed } from '../../../../storage/oauth/audiences.js'
import { hasConsent } from '../../../../storage/oauth/consents.js'
import { findPolicyFor } from '../../../../storage/oauth/identity-assertion-policies.js'
import { readTokenStatusBatch } from '../../../../storage/oauth/token-sessions.js'
import { appendAudit } from '../../../../storage/operations/audit.js'
import { withoutCaller } from '../../../domain/audit.js'
import { levelOf } from '../../../domain/entities/access-policy.js'
import type { IdentityAssertionPolicy } from '../../../domain/entities/identity-assertion-policy.js'
import { ID_JAG, TOKEN_EXCHANGE } from '../../../domain/oauth/grant-types.js'
import { actClaim, type Principal } from '../../../domain/principal.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { inTenant } from '../../../platform/in-tenant.js'
import { isTime } from '../../../platform/jose/external-jws.js'
import { readIdTokenHint } from '../authorization/id-token-hint.js'
import { type Client, isAdmitted } from '../clients/clients.js'
import { type OAuthForm, readScope } from '../form.js'
import type { OAuthRefused, ProofRefused, SecretIssued } from '../protocol.js'
import { refuse } from '../refusals.js'
import type { TokenTools } from '../tools.js'
import { judgeRefresh } from './refresh-token.js'
import type { ExchangeProof } from './token-exchange.js'
import { ACCESS_TOKEN_URN } from './token-exchange-rules.js'
import { BEYOND_RULE } from './workload.js'

const LIFETIME_SECS = 300
const ID_TOKEN_URN = 'urn:ietf:params:oauth:token-type:id_token'
const REFRESH_TOKEN_URN = 'urn:ietf:params:oauth:token-type:refresh_token'

type Application = Extract<Client, { kind: 'application' }>
/** The user of the subject token, and how the user signed in. */
type SignedIn = {
  readonly subject: string
  readonly level: number
  readonly amr: readonly string[]
  readonly authTimeSecs: number | null
  /** The token of an agent that acts for the user. Null if the user is there. */
  readonly delegated: Principal | null
}
type Granted = {
  readonly policy: IdentityAssertionPolicy
  readonly resources: readonly string[]
  readonly scopes: readonly string[]
}

export async function grantIdJag(
  tools: TokenTools,
  client: Client | null,
  form: OAuthForm,
  { jkt, refusal }: ExchangeProof,
  context: MessageContext,
): Promise<SecretIssued | OAuthRefused | ProofRefused> {
  if (client === null || !client.confidential)
    return refuse(
      'invalid_client',
      'a client must authenticate to get an identity assertion',
      'client_authentication_missing',
    )
  if (client.kind !== 'application' || !client.row.grantTypes.includes(TOKEN_EXCHANGE))
    return refuse(
      'unauthorized_client',
      'the application does not have this grant',
      'grant_not_allowed',
    )
  if (isAdmitted(client)) return BEYOND_RULE
  const signedIn = await signedInOf(tools, client, form, jkt, context)
  if (signedIn === 'wrong_key')
    return refusal('subject_token is bound to a key: send a DPoP proof of it')
  if ('tag' in signedIn) return signedIn
  const granted = await grantedOf(tools, client, form, context)
  if ('tag' in granted) return granted
  const needed = levelOf(granted.policy.acr as Parameters<typeof levelOf>[0]) ?? 1
  if (signedIn.level < needed)
    return refuse(
      'insufficient_user_authentication',
      `the user must sign in with acr_values=${granted.policy.acr}`,
      'level_too_low',
    )
  return issue(tools, client, { signedIn, granted, jkt }, context)
}

async function signedInOf(
  tools: TokenTools,
  client: Application,
  form: OAuthForm,
  jkt: string | null,
  context: MessageContext,
): Promise<SignedIn | OAuthRefused | 'wrong_key'> {
  const token = form.get('subject_token')
  const type = form.get('subject_token_type')
  if (token === null)
    return refuse('invalid_request', 'subject_token is missing', 'parameter_missing')
  if (type === ID_TOKEN_URN) return byIdToken(tools, client, token, context)
  if (type === REFRESH_TOKEN_URN) return byRefreshToken(tools, client, token, jkt)
  return type === ACCESS_TOKEN_URN && (await includesAct(tools, client, context))
    ? byDelegatedToken(tools, client, token, jkt, context)
    : refuse(
        'invalid_request',
        `subject_token_type must be ${ID_TOKEN_URN} or ${REFRESH_TOKEN_URN}`,
        'parameter_invalid',
      )
}

const INVALID = refuse(
  'invalid_grant',
  'subject_token is invalid, expired, ended, or of another client',
  'token_invalid',
)

/** An ID token of the application, while its session is open and the user has not withdrawn the consent. */
async function byIdToken(
  { keys, issuer, clock, database, random }: TokenTools,
  { row }: Application,
  token: string,
  context: MessageContext,
): Promise<SignedIn | OAuthRefused> {
  const read = await readIdTokenHint(keys, issuer, token, context)
  if (read === null) return INVALID
  const { subject, clientId, sessionId, tenantId, claims } = read
  if (clientId !== row.id || tenantId !== row.tenantId) return INVALID
  const { exp, acr, amr, auth_time: time } = claims
  if (!isTime(exp) || exp <= clock.nowSecs()) return INVALID
  const [status] = await readTokenStatusBatch(database, [
    {
      tenantId,
      sessionId,
      agentIds: [],
      applicationId: row.id,
      tokenId: random.uuid(),
      grantId: null,
      personSub: subject,
      delegationId: null,
      organizationId: null,
      resourceIds: null,
      clientId: row.id,
    },
  ])
  if (!Object.values(status!).every(Boolean)) return INVALID
  const consented = await inTenant(database, tenantId, context, (tx) =>
    hasConsent(tx, { tenantId, subject, clientId: row.id }),
  )
  if (!consented) return INVALID
  const methods: readonly unknown[] = Array.isArray(amr) ? amr : []
  return {
    subject,
    level: Number(/^aal([1-3])$/.exec(String(acr))?.[1] ?? 1),
    amr: methods.filter((one) => typeof one === 'string'),
    authTimeSecs: isTime(time) ? time : null,
    delegated: null,
  }
}

/** A live refresh token of the application. It is not rotated. */
async function byRefreshToken(
  { lookups, clock }: TokenTools,
  client: Application,
  token: string,
  jkt: string | null,
): Promise<SignedIn | OAuthRefused | 'wrong_key'> {
  const row = await lookups.refreshToken(sha256(token))
  if (row === undefined) return INVALID
  const verdict = judgeRefresh(row, client.row.id, jkt, clock.now())
  if (verdict === 'wrong_key') return verdict
  const isOfUser = row.subjectType === 'human' && row.delegationId === null && row.level !== null
  if (verdict !== 'live' || !isOfUser || row.tenantId !== client.row.tenantId) return INVALID
  const { subject, level, amr, authTime } = row
  const authTimeSecs = Math.floor(authTime.getTime() / 1000)
  return { subject, level: level!, amr, authTimeSecs, delegated: null }
}

/** The tenant lets agents take part. */
async function includesAct(
  { tenants }: TokenTools,
  { row: { tenantId } }: Application,
  context: MessageContext,
): Promise<boolean> {
  const found = await tenants.readTenantSettings({ tenantId }, context)
  return found.tag === 'found' && found.settings.idJag.includeAct
}

/** An access token that an agent of the tenant has for the application, while its delegation is in force. */
async function byDelegatedToken(
  { verifier }: TokenTools,
  { row }: Application,
  token: string,
  jkt: string | null,
  context: MessageContext,
): Promise<SignedIn | OAuthRefused | 'wrong_key'> {
  const read = await verifier.inspect(token, context, 'fresh')
  if (read.state !== 'active') return INVALID
  const { principal } = read.token
  const { tenantId, subjectType, delegationId, actors, audience, subject } = principal
  const isDelegated =
    subjectType === 'human' && delegationId !== null && actors[0]?.issuer === undefined
  if (!isDelegated || tenantId !== row.tenantId || !audience.includes(row.audience)) return INVALID
  if (principal.jkt !== null && principal.jkt !== jkt) return 'wrong_key'
  return {
    subject,
    level: Number(principal.acr?.slice(-1) ?? 1),
    amr: read.token.amr,
    authTimeSecs: principal.authTimeSecs,
    delegated: principal,
  }
}

/** What the policy for the audience grants of the request. */
async function grantedOf(
  { database }: TokenTools,
  { row }: Application,
  form: OAuthForm,
  context: MessageContext,
): Promise<Granted | OAuthRefused> {
  const [audience, ...more] = form.all('audience')
  // PostgreSQL rejects NUL even in a search value.
  if (audience === undefined || more.length > 0 || audience.includes('\0'))
    return refuse('invalid_request', 'audience must be one issuer', 'parameter_missing')
  const { policy, isClaimed } = await inTenant(database, row.tenantId, context, async (tx) => ({
    policy: await findPolicyFor(tx, row.tenantId, row.id, audience),
    isClaimed: await isAudienceClaimed(tx, audience),
  }))
  if (policy === undefined)
    return refuse(
      'unauthorized_client',
      'no policy lets the application get identity assertions',
      'grant_not_allowed',
    )
  if (policy.audience !== audience)
    return refuse('invalid_target', 'no policy has this audience', 'resource_unknown')
  // Its resource server may judge a token by issuer and audience alone, which would be ours and its own.
  if (isClaimed)
    return refuse(
      'invalid_target',
      'an application or API resource of this service has the audience',
      'resource_not_granted',
    )
  const keys = form.all('resource').map(resourceKey)
  const resources = policy.resources.filter(
    (one) => keys.length === 0 || keys.includes(resourceKey(one)),
  )
  if (keys.length > 0 && resources.length !== new Set(keys).size)
    return refuse(
      'invalid_target',
      'the policy does not have this resource',
      'resource_not_granted',
    )
  const scope = form.get('scope')
  const requested = scope === null ? policy.scopes : readScope(scope)
  // The answer says which scopes were granted.
  const scopes = requested?.filter((one) => policy.scopes.includes(one)) ?? []
  return scopes.length > 0
    ? { policy, resources, scopes }
    : refuse(
        'invalid_scope',
        'the scope is malformed, or the policy has none of it',
        'scope_not_allowed',
      )
}

async function issue(
  { keys, issuer, clock, random, database, metrics }: TokenTools,
  { row }: Application,
  of: { readonly signedIn: SignedIn; readonly granted: Granted; readonly jkt: string | null },
  context: MessageContext,
): Promise<SecretIssued | OAuthRefused> {
  const { signedIn, granted, jkt } = of
  const { policy, resources, scopes } = granted
  const { tenantId } = row
  const { subject, delegated } = signedIn
  // Accounts belong to no tenant, so the look-up crosses tenants.
  const person = await database.system((tx) => findPerson(tx, tenantId, subject), context)
  if (person === undefined) return INVALID
  const nowSecs = clock.nowSecs()
  const jti = random.uuid()
  const actors = delegated?.actors ?? []
  const expSecs = Math.min(nowSecs + LIFETIME_SECS, delegated?.expiresAtSecs ?? Infinity)
  const claims = {
    iss: issuer,
    sub: subject,
    aud: policy.audience,
    client_id: policy.targetClientId,
    jti,
    iat: nowSecs,
    exp: expSecs,
    tenant: tenantId,
    ...(resources.length === 0
      ? {}
      : { resource: resources.length === 1 ? resources[0] : resources }),
    scope: scopes.join(' '),
    auth_time: signedIn.authTimeSecs ?? undefined,
    acr: `aal${signedIn.level}`,
    amr: signedIn.amr,
    ...(person.email === '' || !row.scopes.includes('email')
      ? {}
      : { email: person.email, email_verified: person.emailVerified }),
    ...(jkt === null ? {} : { cnf: { jkt } }),
    ...actClaim(actors),
  }
  const message = { typ: 'oauth-id-jag+jwt', claims: JSON.stringify(claims) }
  const signed = await keys.sign(message, context)
  if (signed.tag !== 'signed') throw new DependencyUnavailable('no signing key is available')
  const event = withoutCaller({
    id: random.uuid(),
    tenantId,
    type: 'auth.identity_assertion.issued',
    occurredAt: clock.now(),
    resource: { type: 'identity_assertion_policy', id: policy.id },
    data: { jti, audience: policy.audience, scope: scopes.join(' '), resources },
  })
  const by = {
    subject: { sub: subject, subject_type: 'human' },
    actors: actors.map(({ sub, subjectType }) => ({ sub, subject_type: subjectType })),
    clientId: row.id,
    delegationId: delegated?.delegationId ?? null,
  }
  const done = { ...event, ...by, requestId: context.requestId ?? null }
  await inTenant(database, tenantId, context, async (tx) => appendAudit(tx, [done]))
  metrics.identityAssertion('issued')
  return {
    tag: 'secret_issued',
    accessToken: signed.token,
    issuedTokenType: ID_JAG,
    tokenType: 'N_A',
    expiresInSecs: expSecs - nowSecs,
    scope: scopes.join(' '),
  }
}
