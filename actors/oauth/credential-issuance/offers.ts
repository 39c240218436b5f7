/** Credential offers, as a tenant makes them and as a wallet reads them (OpenID4VCI section 4). */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  type CredentialOfferRow,
  deleteCredentialOffer,
  findCredentialOffer,
  findOfferByHandle,
  insertCredentialOffer,
  listCredentialOffers,
} from '../../../storage/oauth/credential-offers.js'
import {
  holdCredentialDelegation,
  holdCredentialPerson,
} from '../../../storage/oauth/credential-issuance.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { audited, type Caller } from '../../domain/audit.js'
import {
  codeOfOffer,
  isOfferHandle,
  OFFER_HANDLE_BYTES,
  offerSecretSha256,
  txCodeSha256,
} from '../../domain/credentials/offer-secrets.js'
import {
  type CredentialConfigurationId,
  credentialIssuersOf,
} from '../../domain/credentials/catalogue.js'
import { isUuid } from '../../domain/ids.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import { page } from '../../platform/paging.js'
import { PRE_AUTHORIZED_CODE } from '../tokens/protocol.js'
import type { Issuer } from './issuers.js'
import type {
  CreateOffer,
  ListPage,
  OfferCreated,
  OfferFound,
  OfferPresented,
  OfferRecord,
  OfferRefused,
  OfferSecrets,
  OffersListed,
  OfferUnknown,
  OneOffer,
  PresentOffer,
} from './protocol.js'

const TX_CODE_DIGITS = 6
const TX_CODE_TEXT = 'The code that you got with the offer by another way.'

export type OffersNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  /** Public base URL, without a trailing slash. */
  readonly baseUrl: string
  readonly rootTenantSlug: string | undefined
  readonly offerTtlSecs: number
  /** The issuer of a tenant, or null if it issues no credentials. */
  readonly issuerOfTenant: (tenantId: string, context: MessageContext) => Promise<Issuer | null>
}

type Subject = { readonly userId: string; readonly subject: string }

export function credentialOffers(needs: OffersNeeds) {
  const { database, clock, random, baseUrl } = needs

  function record(row: CredentialOfferRow): OfferRecord {
    const isOver = row.expiresAt <= clock.now() && row.status === 'offered'
    return {
      id: row.id,
      tenantId: row.tenantId,
      configurationId: row.configurationId,
      userId: row.userId,
      delegationId: row.delegationId,
      grant: row.grantType,
      status: isOver || row.status === 'burned' ? 'expired' : row.status,
      createdAt: row.createdAt,
      expiresAt: row.expiresAt,
    }
  }

  /** The person that the credential will be about. */
  async function subjectOf(
    tx: Transaction,
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
    message: CreateOffer,
    issuer: Issuer,
    requestId: string | undefined,
  ): Promise<OfferCreated | OfferRefused> {
    const { caller, configurationId, grant } = message
    const { tenantId } = caller.principal
    const subject = await subjectOf(tx, tenantId, message)
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
      expiresAt: new Date(now.getTime() + needs.offerTtlSecs * 1000),
    }
    await insertCredentialOffer(tx, {
      ...offer,
      handleSha256: offerSecretSha256(handle),
      codeSha256: offerSecretSha256(codeOfOffer(grant, handle)),
    })
    appendAudit(tx, [
      audited(caller, {
        id: random.uuid(),
        tenantId,
        type: 'admin.credential_offer.created',
        occurredAt: now,
        resource: { type: 'credential_offer', id },
        requestId,
        data: { credential_configuration_id: configurationId, user_id: subject.userId, grant },
      }),
    ])
    const secrets = { ...secretsOf(baseUrl, offer, handle), txCode }
    const row = { ...offer, status: 'offered' as const }
    return { tag: 'created', record: record(row), secrets, replayed: false }
  }

  return {
    async createCredentialOffer(message: CreateOffer, context: MessageContext) {
      const { principal } = message.caller
      const issuer = await needs.issuerOfTenant(principal.tenantId, context)
      if (issuer === null) return { tag: 'issuance_off' } as const
      const fault = faultOf(message)
      if (fault !== null) return fault
      // Accounts are global, so the transaction crosses tenants. Every statement names the tenant.
      return database.system(
        (tx) =>
          idempotently<OfferCreated | OfferRefused, OfferCreated>(
            tx,
            message.idempotency,
            () => insert(tx, message, issuer, context.requestId),
            (made) => (made.tag === 'created' ? { ...made, secrets: null } : undefined),
          ),
        { signal: context.signal },
      )
    },

    async listCredentialOffers({ caller, limit, after }: ListPage, { signal }: MessageContext) {
      const { tenantId } = caller.principal
      const rows = await database.tenant(
        tenantId,
        (tx) => listCredentialOffers(tx, tenantId, limit + 1, after),
        { signal },
      )
      const { items, next } = page(rows, limit)
      return { tag: 'listed', offers: items.map(record), next } satisfies OffersListed
    },

    async getCredentialOffer(
      { caller, offerId }: OneOffer,
      { signal }: MessageContext,
    ): Promise<OfferFound | OfferUnknown> {
      const { tenantId } = caller.principal
      if (!isUuid(offerId)) return { tag: 'unknown' }
      const row = await database.tenant(
        tenantId,
        (tx) => findCredentialOffer(tx, tenantId, offerId),
        { signal },
      )
      return row === undefined ? { tag: 'unknown' } : { tag: 'found', record: record(row) }
    },

    async deleteCredentialOffer(
      { caller, offerId }: OneOffer,
      { requestId, signal }: MessageContext,
    ) {
      const { tenantId } = caller.principal
      if (!isUuid(offerId)) return { tag: 'unknown' } as const
      return database.tenant(
        tenantId,
        async (tx) => {
          const row = await deleteCredentialOffer(tx, tenantId, offerId)
          if (row === undefined) return { tag: 'unknown' } as const
          appendAudit(tx, [deletion(caller, row, requestId)])
          return { tag: 'deleted' } as const
        },
        { signal },
      )
    },

    async showCredentialOffer(
      { tenantSlug, handle }: PresentOffer,
      { signal }: MessageContext,
    ): Promise<OfferPresented | OfferUnknown> {
      if (!isOfferHandle(handle)) return { tag: 'unknown' }
      const row = await database.system(
        (tx) => findOfferByHandle(tx, offerSecretSha256(handle), clock.now()),
        { signal },
      )
      if (row === undefined || !isOf(row, tenantSlug)) return { tag: 'unknown' }
      const { offer, deepLink } = secretsOf(baseUrl, row, handle)
      return {
        tag: 'presented',
        offer,
        deepLink,
        needsTxCode: row.txCodeSha256 !== null,
        configurationId: row.configurationId as CredentialConfigurationId,
        tenant: brandingOf(row.tenantId, row.tenantName, row.tenantSettings),
      }
    },
  }

  /** True if the URL is that of the offer's issuer. The page belongs to no issuer. */
  function isOf({ issuer }: CredentialOfferRow, slug: string | null | undefined): boolean {
    if (slug === undefined) return true
    const of = slug ?? needs.rootTenantSlug
    if (of === undefined) return false
    return credentialIssuersOf(baseUrl, of, needs.rootTenantSlug).includes(issuer)
  }

  function deletion(caller: Caller, row: CredentialOfferRow, requestId: string | undefined) {
    return audited(caller, {
      id: random.uuid(),
      tenantId: row.tenantId,
      type: 'admin.credential_offer.deleted',
      occurredAt: clock.now(),
      resource: { type: 'credential_offer', id: row.id },
      requestId,
      data: { credential_configuration_id: row.configurationId, user_id: row.userId },
    })
  }
}

/** The first fault of a request. */
function faultOf({
  configurationId,
  userId,
  delegationId,
  grant,
  txCode,
}: CreateOffer): Extract<OfferRefused, { tag: 'invalid' | 'unknown_subject' }> | null {
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
  return null
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
