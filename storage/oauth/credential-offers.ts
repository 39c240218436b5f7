/** Credential offers. A code or an issuer_state is redeemed once (OpenID4VCI sections 4 to 6). */
import { execute, firstRow, firstValue, isChanged, type Transaction } from '../platform/sql.js'
import { listing } from '../platform/portable/tenant-rows.js'
import { removing } from '../platform/portable/expiry.js'

type OfferGrant = 'authorization_code' | 'pre-authorized_code'
/** `burned`: too many wrong transaction codes. It is shown as expired. */
type StoredOfferStatus = 'offered' | 'redeemed' | 'issued' | 'burned'

/** After this many wrong transaction codes the pre-authorized code is worthless. */
const TX_CODE_FAILURES_MAX = 5

export type CredentialOfferRow = {
  readonly tenantId: string
  readonly id: string
  /** The credential issuer identifier. */
  readonly issuer: string
  readonly configurationId: string
  readonly userId: string
  readonly subject: string
  readonly delegationId: string | null
  readonly grantType: OfferGrant
  readonly txCodeSha256: Uint8Array | null
  readonly status: StoredOfferStatus
  readonly createdAt: Date
  readonly expiresAt: Date
}

type NewCredentialOffer = Omit<CredentialOfferRow, 'status'> & {
  readonly handleSha256: Uint8Array
  readonly codeSha256: Uint8Array
}

const COLUMNS = `tenant_id as "tenantId", id, issuer, configuration_id as "configurationId",
  user_id as "userId", subject, delegation_id as "delegationId", grant_type as "grantType",
  tx_code_sha256 as "txCodeSha256", status, created_at as "createdAt", expires_at as "expiresAt"`

export const insertCredentialOffer = (tx: Transaction, offer: NewCredentialOffer) =>
  execute(tx, {
    name: 'credential_offer.insert',
    text: `insert into credential_offers (tenant_id, id, issuer, configuration_id, user_id, subject,
             delegation_id, grant_type, handle_sha256, code_sha256, tx_code_sha256, created_at,
             expires_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
    values: [
      offer.tenantId,
      offer.id,
      offer.issuer,
      offer.configurationId,
      offer.userId,
      offer.subject,
      offer.delegationId,
      offer.grantType,
      Buffer.from(offer.handleSha256),
      Buffer.from(offer.codeSha256),
      offer.txCodeSha256 && Buffer.from(offer.txCodeSha256),
      offer.createdAt,
      offer.expiresAt,
    ],
  })

/** A page of a tenant's offers, newest first. */
export const listCredentialOfferRows = listing<CredentialOfferRow>(
  'credential_offer.list',
  `select ${COLUMNS} from credential_offers where tenant_id = $1`,
)

export const findCredentialOffer = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<CredentialOfferRow>(tx, {
    name: 'credential_offer.find',
    text: `select ${COLUMNS} from credential_offers where tenant_id = $1 and id = $2`,
    values: [tenantId, id],
  })

/** Withdraws an offer: its code and the tokens from it request nothing any more. */
export const deleteCredentialOfferRow = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<CredentialOfferRow>(tx, {
    name: 'credential_offer.delete',
    text: `delete from credential_offers where tenant_id = $1 and id = $2 returning ${COLUMNS}`,
    values: [tenantId, id],
  })

/** An offer with what its page shows. */
type ShownOfferRow = CredentialOfferRow & {
  readonly tenantName: string
  readonly tenantSettings: Readonly<Record<string, unknown>>
}

/** An open offer by the secret of its URL. The tenant is unknown, so it crosses tenants. */
export const findOfferByHandle = (tx: Transaction, handleSha256: Uint8Array, now: Date) =>
  firstRow<ShownOfferRow>(tx, {
    name: 'credential_offer.by_handle',
    text: `select o.*, t.name as "tenantName", t.settings as "tenantSettings"
           from (select ${COLUMNS} from credential_offers
             where handle_sha256 = $1 and status = 'offered' and expires_at > $2) o
           join tenants t on t.id = o."tenantId" and t.status = 'active'
             and t.credential_issuer_enabled`,
    values: [Buffer.from(handleSha256), now],
  })

export type PresentedOffer = CredentialOfferRow & {
  /** The tenant issues credentials, and the person is not suspended or removed. */
  readonly standing: boolean
}

/** The offer of a pre-authorized code or issuer_state. The tenant is unknown, so it crosses tenants. */
export const findOfferByCode = (tx: Transaction, codeSha256: Uint8Array) =>
  firstRow<PresentedOffer>(tx, {
    name: 'credential_offer.by_code',
    text: `select ${COLUMNS},
             exists (select from tenants t where t.id = o.tenant_id and t.status = 'active'
               and t.credential_issuer_enabled)
             and exists (select from tenant_users u where u.tenant_id = o.tenant_id
               and u.sub = o.subject and u.status not in ('removed', 'suspended')
               and u.account_active) as standing
           from credential_offers o where code_sha256 = $1`,
    values: [Buffer.from(codeSha256)],
  })

type CodeRedemption = {
  readonly tenantId: string
  readonly id: string
  /** Whether the transaction code of the request is the right one. True for an offer without one. */
  readonly right: boolean
  /** The `jti` of the token. */
  readonly tokenId: string
  readonly now: Date
}

/**
 * Redeems a pre-authorized code, or counts a wrong transaction code. One statement does both, so that
 * concurrent guesses cannot get more attempts.
 * @returns whether this call redeemed the code. Undefined if the code is used, expired or burned.
 */
export const redeemPreAuthorizedCode = (
  tx: Transaction,
  { tenantId, id, right, tokenId, now }: CodeRedemption,
) =>
  firstValue<boolean>(tx, {
    name: 'credential_offer.redeem_code',
    text: `update credential_offers set
             tx_failures = tx_failures + case when $3 then 0 else 1 end,
             status = case when $3 then 'redeemed'
               when tx_failures + 1 >= $6 then 'burned' else status end,
             token_id = case when $3 then $4::uuid end
           where tenant_id = $1 and id = $2 and grant_type = 'pre-authorized_code'
             and status = 'offered' and expires_at > $5
           returning status = 'redeemed' as redeemed`,
    values: [tenantId, id, right, tokenId, now, TX_CODE_FAILURES_MAX],
  })

/** Uses up the issuer_state of an offer for one authorization code. False if it is used or expired. */
export const redeemIssuerState = (
  tx: Transaction,
  tenantId: string,
  { id, subject, grantId, now }: { id: string; subject: string; grantId: string; now: Date },
) =>
  isChanged(tx, {
    name: 'credential_offer.redeem_state',
    text: `update credential_offers set status = 'redeemed', grant_id = $4
           where tenant_id = $1 and id = $2 and subject = $3 and grant_type = 'authorization_code'
             and status = 'offered' and expires_at > $5`,
    values: [tenantId, id, subject, grantId, now],
  })

/** The redeemed offer of an access token, by its `jti` or its grant. Locked, so that it is not withdrawn. */
export const holdOfferOfToken = (
  tx: Transaction,
  tenantId: string,
  { tokenId, grantId }: { readonly tokenId: string; readonly grantId: string | null },
) =>
  firstRow<CredentialOfferRow>(tx, {
    name: 'credential_offer.of_token',
    text: `select ${COLUMNS} from credential_offers
           where tenant_id = $1 and (token_id = $2 or grant_id = $3)
             and status in ('redeemed', 'issued') limit 1 for update`,
    values: [tenantId, tokenId, grantId],
  })

export const markOfferIssued = (tx: Transaction, tenantId: string, id: string) =>
  execute(tx, {
    name: 'credential_offer.issued',
    text: `update credential_offers set status = 'issued'
           where tenant_id = $1 and id = $2 and status = 'redeemed'`,
    values: [tenantId, id],
  })

/** Deletes up to `limit` offers that expired before `before`. Crosses tenants. */
export const removeEndedOffers = removing('credential_offer.remove_ended', 'credential_offers')
