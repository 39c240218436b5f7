/** Credential offers, as a tenant makes them and as a wallet reads them (OpenID4VCI section 4). */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  type CredentialOfferRow,
  listCredentialOfferRows,
  findCredentialOffer,
  findOfferByHandle,
  insertCredentialOffer,
  deleteCredentialOfferRow,
} from '../../../storage/oauth/credential-offers.js'
import {
  holdCredentialDelegation,
  holdCredentialPerson,
} from '../../../storage/oauth/credential-issuance.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  codeOfOffer,
  isOfferHandle,
  OFFER_HANDLE_BYTES,
  txCodeSha256,
} from '../../domain/credentials/offer-secrets.js'
import {
  type CredentialConfigurationId,
  credentialIssuersOf,
} from '../../domain/credentials/catalogue.js'
import { isUuid } from '../../domain/ids.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import { sha256 } from '../../domain/secret-hashes.js'
import { pageOf } from '../../platform/paging.js'
import { recordAudit } from '../../platform/record-audit.js'
import { PRE_AUTHORIZED_CODE } from '../../domain/oauth/grant-types.js'
import type { Issuer } from './issuers.js'
import type {
  CreateOffer,
  OfferCreated,
  OfferRecord,
  OfferRefused,
  OfferSecrets,
} from './protocol.js'
import type { Handling, IssuanceTools } from './tools.js'
import { inTenant } from '../../platform/in-tenant.js'

const TX_CODE_DIGITS = 6
const TX_CODE_TEXT = 'The code that you got with the offer by another way.'
const UNKNOWN = { tag: 'unknown' } as const

type Subject = { readonly userId: string; readonly subject: string }

export const createCredentialOffer: Handling<'createCredentialOffer'> = async (
  tools,
  message,
  context,
) => {
  const issuer = await tools.issuers.byTenant(message.caller.principal.tenantId, context)
  if (issuer === null) return { tag: 'issuance_off' }
  const fault = faultOf(message)
  if (fault !== undefined) return fault
  // Accounts are global, so the transaction crosses tenants. Every statement names the tenant.
  return tools.database.system(
    (tx) =>
      idempotently<OfferCreated | OfferRefused, OfferCreated>(
        tx,
        message.idempotency,
        () => insert(tx, tools, message, issuer, context),
        (made) => (made.tag === 'created' ? { ...made, secrets: null } : undefined),
      ),
    context,
  )
}

export const listCredentialOffers: Handling<'listCredentialOffers'> = async (
  tools,
  message,
  context,
) => {
  const { tenantId } = message.caller.principal
  const { items, next } = await pageOf(tools, tenantId, message, context, listCredentialOfferRows)
  const now = tools.clock.now()
  return { tag: 'listed', offers: items.map((row) => recordOf(row, now)), next }
}

export const getCredentialOffer: Handling<'getCredentialOffer'> = async (
  { database, clock },
  { caller, offerId },
  context,
) => {
  const { tenantId } = caller.principal
  if (!isUuid(offerId)) return UNKNOWN
  const row = await inTenant(database, tenantId, context, (tx) =>
    findCredentialOffer(tx, tenantId, offerId),
  )
  return row === undefined ? UNKNOWN : { tag: 'found', record: recordOf(row, clock.now()) }
}

export const deleteCredentialOffer: Handling<'deleteCredentialOffer'> = async (
  tools,
  { caller, offerId },
  context,
) => {
  const { tenantId } = caller.principal
  if (!isUuid(offerId)) return UNKNOWN
  return inTenant(tools.database, tenantId, context, async (tx) => {
    const row = await deleteCredentialOfferRow(tx, tenantId, offerId)
    if (row === undefined) return UNKNOWN
    recordAudit(tx, tools, caller, context, {
      type: 'admin.credential_offer.deleted',
      resource: { type: 'credential_offer', id: row.id },
      data: { credential_configuration_id: row.configurationId, user_id: row.userId },
    })
    return { tag: 'deleted' } as const
  })
}

// Also the operations `readRootCredentialOffer` and `readTenantCredentialOffer`.
export const showCredentialOffer: Handling<'showCredentialOffer'> = async (
  tools,
  { tenantSlug, handle },
  context,
) => {
  const { database, clock, baseUrl } = tools
  if (!isOfferHandle(handle)) return UNKNOWN
  const row = await database.system(
    (tx) => findOfferByHandle(tx, sha256(handle), clock.now()),
    context,
  )
  if (row === undefined || !isOfIssuer(tools, row, tenantSlug)) return UNKNOWN
  const { offer, deepLink } = secretsOf(baseUrl, row, handle)
  return {
    tag: 'presented',
    offer,
    deepLink,
    needsTxCode: row.txCodeSha256 !== null,
    configurationId: row.configurationId as CredentialConfigurationId,
    tenant: brandingOf(row.tenantId, row.tenantName, row.tenantSettings),
  }
}

/** True if the URL belongs to the offer's issuer. The page belongs to no issuer. */
function isOfIssuer(
  { baseUrl, rootTenantSlug }: IssuanceTools,
  { issuer }: CredentialOfferRow,
  slug: string | null | undefined,
): boolean {
  if (slug === undefined) return true
  const of = slug ?? rootTenantSlug
  return of !== undefined && credentialIssuersOf(baseUrl, of, rootTenantSlug).includes(issuer)
}

function recordOf(row: CredentialOfferRow, now: Date): OfferRecord {
  const { id, tenantId, configurationId, userId, delegationId, grantType, status } = row
  const isOver = row.expiresAt <= now && status === 'offered'
  return {
    id,
    tenantId,
    configurationId,
    userId,
    delegationId,
    grant: grantType,
    status: isOver || status === 'burned' ? 'expired' : status,
    createdAt: row.createdAt,
    expiresAt: row.expiresAt,
  }
}

/** The person that the credential will be about. */
async function subjectOf(
  tx: Transaction,
  { clock }: IssuanceTools,
  tenantId: string,
  { configurationId, userId, delegationId }: CreateOffer,
): Promise<Subject | OfferRefused> {
  if (configurationId === 'AgentDelegation') {
    const delegation = await holdCredentialDelegation(tx, tenantId, delegationId!, clock.now())
    const person =
      delegation &&
      (await holdCredentialPerson(tx, tenantId, { userId: null, subject: delegation.subject }))
    if (person === undefined || (userId !== null && userId !== person.userId))
      return { tag: 'unknown_subject', detail: 'The delegation does not exist or has ended.' }
    return person
  }
  const person = await holdCredentialPerson(tx, tenantId, { userId, subject: null })
  if (person === undefined)
    return { tag: 'unknown_subject', detail: 'The user does not exist or is not active.' }
  return configurationId === 'VerifiedEmail' && !person.emailVerified
    ? { tag: 'email_not_verified' }
    : person
}

async function insert(
  tx: Transaction,
  tools: IssuanceTools,
  message: CreateOffer,
  issuer: Issuer,
  context: MessageContext,
): Promise<OfferCreated | OfferRefused> {
  const { clock, random, baseUrl, settings } = tools
  const { caller, configurationId, grant } = message
  const { tenantId } = caller.principal
  const subject = await subjectOf(tx, tools, tenantId, message)
  if ('tag' in subject) return subject
  const id = random.uuid()
  const handle = random.token(OFFER_HANDLE_BYTES)
  const txCode = message.txCode ? digits(random) : null
  const now = clock.now()
  const offer = {
    tenantId,
    id,
    issuer: issuer.identifier,
    configurationId,
    userId: subject.userId,
    subject: subject.subject,
    delegationId: configurationId === 'AgentDelegation' ? message.delegationId : null,
    grantType: grant,
    txCodeSha256: txCode === null ? null : txCodeSha256(id, txCode),
    createdAt: now,
    expiresAt: new Date(now.getTime() + settings.offer_ttl_secs * 1000),
  }
  await insertCredentialOffer(tx, {
    ...offer,
    handleSha256: sha256(handle),
    codeSha256: sha256(codeOfOffer(grant, handle)),
  })
  recordAudit(tx, tools, caller, context, {
    type: 'admin.credential_offer.created',
    resource: { type: 'credential_offer', id },
    data: { credential_configuration_id: configurationId, user_id: subject.userId, grant },
  })
  const secrets = { ...secretsOf(baseUrl, offer, handle), txCode }
  const row = { ...offer, status: 'offered' as const }
  return { tag: 'created', record: recordOf(row, now), secrets, replayed: false }
}

/** The first fault of a request. */
function faultOf({
  configurationId,
  userId,
  delegationId,
  grant,
  txCode,
}: CreateOffer): Extract<OfferRefused, { tag: 'invalid' | 'unknown_subject' }> | undefined {
  const invalid = (pointer: string, detail: string) =>
    ({ tag: 'invalid', pointer, detail }) as const
  if (configurationId === 'AgentDelegation') {
    if (delegationId === null)
      return invalid('/delegation_id', 'An AgentDelegation needs delegation_id.')
  } else {
    if (userId === null) return invalid('/user_id', `A ${configurationId} needs user_id.`)
    if (delegationId !== null)
      return invalid('/delegation_id', 'Only an AgentDelegation has delegation_id.')
  }
  if (txCode && grant !== 'pre-authorized_code')
    return invalid('/tx_code', 'A transaction code needs the grant pre-authorized_code.')
  if ((userId !== null && !isUuid(userId)) || (delegationId !== null && !isUuid(delegationId)))
    return { tag: 'unknown_subject', detail: 'The user or delegation does not exist.' }
  return undefined
}

type Offered = Pick<CredentialOfferRow, 'issuer' | 'configurationId' | 'grantType' | 'txCodeSha256'>

/** What a wallet gets (OpenID4VCI section 4.1). */
function secretsOf(
  baseUrl: string,
  { issuer, configurationId, grantType, txCodeSha256: hash }: Offered,
  handle: string,
): Omit<OfferSecrets, 'txCode'> {
  const code = codeOfOffer(grantType, handle)
  const txCode = { input_mode: 'numeric', length: TX_CODE_DIGITS, description: TX_CODE_TEXT }
  const grants =
    grantType === 'authorization_code'
      ? { authorization_code: { issuer_state: code } }
      : {
          [PRE_AUTHORIZED_CODE]: {
            'pre-authorized_code': code,
            ...(hash === null ? {} : { tx_code: txCode }),
          },
        }
  const uri = `${issuer}/credential-offers/${handle}`
  return {
    uri,
    offer: {
      credential_issuer: issuer,
      credential_configuration_ids: [configurationId],
      grants,
    },
    deepLink: `openid-credential-offer://?credential_offer_uri=${encodeURIComponent(uri)}`,
    pageUrl: `${baseUrl}/credential-offers/${handle}/page`,
  }
}

/** Decimal digits. The modulus is far below 2^48, so all values are equally likely. */
function digits(random: Random): string {
  const number = Buffer.from(random.bytes(6)).readUIntBE(0, 6) % 10 ** TX_CODE_DIGITS
  return String(number).padStart(TX_CODE_DIGITS, '0')
}
