/** Issues SD-JWT VCs for key proofs (OpenID4VCI section 8, SD-JWT VC, RFC 9901). */
import { createHash } from 'node:crypto'
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import { DependencyUnavailable } from '../../../runtime/kernel/dependency.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  type CredentialDelegation,
  type CredentialPerson,
  holdCredentialDelegation,
  holdCredentialPerson,
  insertIssuedCredential,
} from '../../../storage/oauth/credential-issuance.js'
import {
  type CredentialOfferRow,
  holdOfferOfToken,
  markOfferIssued,
} from '../../../storage/oauth/credential-offers.js'
import { allocateStatus, statusListUri } from '../../../storage/oauth/status-lists.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { agentJwk } from '../../domain/agents/documents.js'
import {
  ANONYMOUS_CLIENT,
  type CredentialConfigurationId,
  credentialTypeUrl,
} from '../../domain/credentials/catalogue.js'
import { recordAudit } from '../../platform/record-audit.js'
import { type ImportedKey, importPublicJwk } from '../../platform/jose/external-jwk.js'
import type { SigningKeysProtocol } from '../signing-keys/protocol.js'
import { typeMetadata } from '../../domain/credentials/configurations.js'
import type { Issuer } from './issuers.js'
import { type CredentialRefused, credentialRefused, type CredentialsIssued } from './protocol.js'
import type { WalletToken } from './wallet-token.js'
import type { WriteNeeds } from '../../platform/write-needs.js'

const CREDENTIAL_TYPE = 'dc+sd-jwt'
/** Times are rounded down to minutes, so that they link fewer credentials. */
const ROUNDING_SECS = 60
const SALT_BYTES = 16
const DECOYS_MIN = 2
const DECOYS_MAX = 5

export type IssueNeeds = WriteNeeds & {
  readonly keys: ActorRef<SigningKeysProtocol>
  /** Public base URL, without a trailing slash. */
  readonly baseUrl: string
  readonly lifetimeSecs: number
}

type Issue = {
  readonly issuer: Issuer
  readonly configurationId: CredentialConfigurationId
  readonly token: WalletToken
  /** The keys of the proofs: each gets a credential. */
  readonly proofKeys: readonly ImportedKey[]
  readonly address: string
}

/** What a credential states, and what ends it. */
type Facts = {
  readonly offer: CredentialOfferRow | undefined
  readonly person: CredentialPerson
  readonly delegation: CredentialDelegation | undefined
  readonly expiresAt: Date
}

/** Credentials, their records, status entries and audit event commit together. */
export async function issueCredentials(
  needs: IssueNeeds,
  issue: Issue,
  context: MessageContext,
): Promise<CredentialsIssued | CredentialRefused> {
  // Accounts are global, so the transaction crosses tenants. Every statement names the tenant.
  return needs.database.system(async (tx) => {
    const facts = await factsOf(tx, needs, issue)
    if ('tag' in facts) return facts
    return write(tx, needs, issue, facts, context)
  }, context)
}

async function factsOf(
  tx: Transaction,
  { clock, lifetimeSecs }: IssueNeeds,
  { issuer, configurationId, token, proofKeys }: Issue,
): Promise<Facts | CredentialRefused> {
  const denied = (description: string) =>
    credentialRefused('credential_request_denied', description)
  const { principal } = token
  const tenantId = issuer.tenant.id
  const grantId = principal.grantId ?? null
  const found = await holdOfferOfToken(tx, tenantId, { tokenId: principal.tokenId, grantId })
  const offer = found?.configurationId === configurationId ? found : undefined
  if (offer === undefined && principal.clientId === ANONYMOUS_CLIENT)
    return denied('the offer was withdrawn')
  const person = await holdCredentialPerson(tx, tenantId, {
    userId: null,
    subject: principal.subject,
  })
  if (person === undefined) return denied('the person is not active in the tenant')
  const now = clock.now()
  const expiresAt = new Date(now.getTime() + lifetimeSecs * 1000)
  if (configurationId === 'VerifiedEmail' && !person.emailVerified)
    return denied('the person has no verified address')
  if (configurationId !== 'AgentDelegation')
    return { offer, person, delegation: undefined, expiresAt }
  if (offer?.delegationId == null) return denied('an AgentDelegation needs an offer')
  const delegation = await holdCredentialDelegation(tx, tenantId, offer.delegationId, now)
  if (delegation === undefined || delegation.subject !== person.subject)
    return denied('the delegation has ended')
  const agentKeys = await Promise.all(
    delegation.keys.map(({ algorithm, publicKey }) =>
      importPublicJwk(agentJwk(algorithm, Buffer.from(publicKey, 'hex'))),
    ),
  )
  const isOfAgent = ({ thumbprint }: ImportedKey) =>
    agentKeys.some((key) => key?.thumbprint === thumbprint)
  if (!proofKeys.every(isOfAgent))
    return credentialRefused('invalid_proof', 'a proof is not made with a key of the agent')
  const ends = delegation.expiresAt < expiresAt ? delegation.expiresAt : expiresAt
  return { offer, person, delegation, expiresAt: ends }
}

async function write(
  tx: Transaction,
  needs: IssueNeeds,
  issue: Issue,
  facts: Facts,
  context: MessageContext,
): Promise<CredentialsIssued> {
  const { clock, random } = needs
  const { issuer, configurationId, token, proofKeys, address } = issue
  const { offer, person } = facts
  const tenantId = issuer.tenant.id
  const now = clock.now()
  const notificationId = random.uuid()
  const credentials: string[] = []
  const ids: string[] = []
  for (const key of proofKeys) {
    const id = random.uuid()
    const place = await allocateStatus(tx, random, {
      tenantId,
      purpose: 'credential',
      issuer: issuer.identifier,
      ref: id,
      now,
      expiresAt: facts.expiresAt,
    })
    const { credential, kid } = await sign(needs, issue, facts, { key, now, ...place }, context)
    credentials.push(credential)
    await insertIssuedCredential(tx, {
      tenantId,
      id,
      offerId: offer?.id ?? null,
      userId: person.userId,
      subject: person.subject,
      delegationId: facts.delegation?.id ?? null,
      configurationId,
      roles: configurationId === 'TenantMembership' ? person.roles : [],
      ...place,
      notificationId,
      issuedAt: now,
      expiresAt: facts.expiresAt,
      kid,
    })
    ids.push(id)
  }
  if (offer !== undefined) await markOfferIssued(tx, tenantId, offer.id)
  recordAudit(tx, needs, { principal: token.principal, address }, context, {
    type: 'credential.issued',
    tenantId,
    resource: { type: 'credential', id: ids[0]! },
    data: {
      credential_configuration_id: configurationId,
      credential_ids: ids,
      offer_id: offer?.id ?? null,
      user_id: person.userId,
    },
  })
  return { tag: 'issued', credentials, notificationId }
}

async function sign(
  { keys, random, baseUrl }: IssueNeeds,
  { issuer, configurationId }: Issue,
  facts: Facts,
  {
    key,
    now,
    listId,
    idx,
  }: {
    readonly key: ImportedKey
    readonly now: Date
    readonly listId: string
    readonly idx: number
  },
  context: MessageContext,
): Promise<{ readonly credential: string; readonly kid: string }> {
  const { payload, disclosures } = disclosable(random, claimsOf(configurationId, issuer, facts))
  const issuedAt = rounded(now)
  const claims = {
    iss: issuer.identifier,
    iat: issuedAt,
    nbf: issuedAt,
    exp: rounded(facts.expiresAt),
    vct: credentialTypeUrl(baseUrl, configurationId),
    'vct#integrity': typeMetadata(baseUrl, configurationId).integrity,
    cnf: { jwk: key.jwk },
    status: { status_list: { idx, uri: statusListUri(baseUrl, listId) } },
    ...payload,
  }
  const tenantId = issuer.tenant.id
  const signed = await keys.signForTenant(
    { tenantId, typ: CREDENTIAL_TYPE, claims: JSON.stringify(claims) },
    context,
  )
  if (signed.tag !== 'signed') throw new DependencyUnavailable('no signing key is available')
  return { credential: withDisclosures(signed.token, disclosures), kid: signed.kid }
}

/** The claims of docs/reference/oauth.md, Verifiable credentials. Each is disclosed selectively. */
function claimsOf(
  configurationId: CredentialConfigurationId,
  { tenant }: Issuer,
  { person, delegation }: Facts,
): Readonly<Record<string, unknown>> {
  switch (configurationId) {
    case 'TenantMembership':
      return {
        sub: person.subject,
        tenant: { id: tenant.id, name: person.tenantName },
        roles: person.roles,
        org: { id: person.organizationId, name: person.organizationName },
      }
    case 'VerifiedEmail':
      return { email: person.email, email_verified: true }
    case 'AgentDelegation':
      return {
        sub: person.subject,
        act: { sub: delegation!.agentId, subject_type: 'agent' },
        scope: delegation!.scopes.join(' '),
        delegation_id: delegation!.id,
      }
  }
}

function rounded(time: Date): number {
  const secs = Math.floor(time.getTime() / 1000)
  return secs - (secs % ROUNDING_SECS)
}

type Disclosable = {
  /** The members `_sd` and `_sd_alg` of the payload. */
  readonly payload: { readonly _sd: readonly string[]; readonly _sd_alg: 'sha-256' }
  readonly disclosures: readonly string[]
}

/**
 * Makes each claim selectively disclosable. Two to five decoy digests hide how many claims there are, and the
 * digests are sorted, so that their order tells nothing.
 */
function disclosable(random: Random, claims: Readonly<Record<string, unknown>>): Disclosable {
  const disclosures = Object.entries(claims).map(([name, value]) =>
    Buffer.from(JSON.stringify([random.token(SALT_BYTES), name, value])).toString('base64url'),
  )
  const span = DECOYS_MAX - DECOYS_MIN + 1
  const decoys = Array.from({ length: DECOYS_MIN + (random.bytes(1)[0]! % span) }, () =>
    digest(random.token(32)),
  )
  const digests = [...disclosures.map(digest), ...decoys].toSorted()
  return { payload: { _sd: digests, _sd_alg: 'sha-256' }, disclosures }
}

/** The issued form: the JWT, the disclosures and no key binding JWT (RFC 9901 section 4). */
function withDisclosures(jwt: string, disclosures: readonly string[]): string {
  return `${[jwt, ...disclosures].join('~')}~`
}

function digest(text: string): string {
  return createHash('sha256').update(text, 'ascii').digest('base64url')
}
