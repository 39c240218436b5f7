/** Authorization requests for credentials: `issuer_state` and details of the type openid_credential (OpenID4VCI section 5). */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import type { AuthorizingClientRow } from '../../../../storage/oauth/applications.js'
import type { AuthorizationDetails } from '../../../../storage/oauth/authorization-codes.js'
import { findOfferByCode } from '../../../../storage/oauth/credential-offers.js'
import type { Database } from '../../../../storage/platform/sql.js'
import { CREDENTIAL_DETAILS_TYPE } from '../../../domain/credentials/catalogue.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { knownAudience } from '../issue/audience.js'
import { inTenant } from '../../../platform/in-tenant.js'

type Needs = {
  readonly database: Database
  readonly clock: Clock
  readonly issuer: string
}

type OfferedTo =
  | { readonly offerId: string | null }
  | { readonly fault: readonly ['invalid_request' | 'access_denied', string] }

/** The offer behind `issuer_state`, which must be for the signed-in person. Null without the parameter. */
export async function offeredTo(
  { database, clock }: Needs,
  issuerState: string | null | undefined,
  { tenantId, sub }: { readonly tenantId: string; readonly sub: string },
  context: MessageContext,
): Promise<OfferedTo> {
  if (issuerState == null) return { offerId: null }
  const offer = await inTenant(database, tenantId, context, (tx) =>
    findOfferByCode(tx, sha256(issuerState)),
  )
  const isOpen =
    offer?.grantType === 'authorization_code' &&
    offer.status === 'offered' &&
    offer.standing &&
    offer.expiresAt > clock.now()
  if (offer === undefined || !isOpen)
    return { fault: ['invalid_request', 'issuer_state is unknown, expired or was used'] }
  return offer.subject === sub
    ? { offerId: offer.id }
    : { fault: ['access_denied', 'the credential offer is for another person'] }
}

/** True if every `locations` of credential details names an issuer of the tenant (RFC 9396 section 2.2). */
export async function hasKnownLocations(
  { database, issuer }: Needs,
  client: AuthorizingClientRow,
  details: AuthorizationDetails | null,
  context: MessageContext,
): Promise<boolean> {
  const locations = (details ?? [])
    .filter(({ type }) => type === CREDENTIAL_DETAILS_TYPE)
    .flatMap((detail) => (detail['locations'] ?? []) as readonly string[])
  return (await knownAudience(database, issuer, client, locations, context)) !== null
}

/** The details as granted. Details of credentials get `credential_identifiers` (OpenID4VCI section 6.2). */
export function grantedDetails(
  random: Random,
  details: AuthorizationDetails | null,
): AuthorizationDetails | null {
  if (details === null) return null
  return details.map((detail) =>
    detail['type'] === CREDENTIAL_DETAILS_TYPE
      ? { ...detail, credential_identifiers: [random.uuid()] }
      : detail,
  )
}
