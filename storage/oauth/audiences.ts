/**
 * The audiences of applications and API resources. An audience belongs to one tenant of the deployment, since a resource
 * server knows only the issuer and its own audience.
 */
import { lockUntilEnd } from '../platform/portable/locks.js'
import { onlyValue, type Transaction } from '../platform/sql.js'

/** Where an audience is unique: the claims, and the constraints of the tables that are older than them. */
const CONSTRAINTS = new Set([
  'audience_claims_pkey',
  'audience_claims_audience_key_holder_key',
  'applications_tenant_id_audience_key',
  'api_resources_resource_key_key',
])
const UNRESERVED = /[A-Za-z0-9._~-]/
/** Audiences that this service gives: the default audience of an application contains its id. */
const GIVEN = 'urn:svc:'

/** The default audience of an application. */
export function defaultAudience(applicationId: string): string {
  return `${GIVEN}application:${applicationId}`
}

/** Another application or API resource has the audience. */
class AudienceTaken extends Error {
  readonly constraint = 'audience_claims_audience_key_holder_key'
}

/** True if a write failed because another application or API resource has the audience. */
export function isAudienceTaken(error: unknown): boolean {
  return CONSTRAINTS.has(String((error as { constraint?: unknown } | null)?.constraint))
}

/**
 * The canonical form, in which two spellings of one audience are equal: case, percent-encoding, dot segments, default
 * port and empty path (RFC 3986 sections 6.2.2 and 6.2.3, RFC 8141 section 3.1).
 */
function audienceKey(audience: string): string {
  const plain = plainly(audience)
  if (/^urn:/i.test(plain)) return plain.replace(/^urn:[^:]*/i, (name) => name.toLowerCase())
  if (!URL.canParse(plain)) return plain
  const { href } = new URL(plain)
  return href.replace(/^[^:]+:\/\/[^/?#]*/, (origin) => origin.toLowerCase())
}

/** Decodes what needs no encoding, and writes the rest of the encoding in upper case. */
function plainly(audience: string): string {
  return audience.replaceAll(/%[0-9a-f]{2}/gi, (encoded) => {
    const character = String.fromCodePoint(Number.parseInt(encoded.slice(1), 16))
    return UNRESERVED.test(character) ? character : encoded.toUpperCase()
  })
}

type AudienceHolder = {
  readonly tenantId: string
  readonly holder: 'application' | 'resource'
  readonly id: string
}

/**
 * Claims the audience for an application or API resource, and gives up the one that it had. The row of the holder must
 * exist. The default audience of an application needs no claim.
 * @throws an error of `isAudienceTaken` if another tenant has it, or another holder of this kind, or this service gives it
 *   to one application.
 */
export async function claimAudience(
  tx: Transaction,
  { tenantId, holder, id }: AudienceHolder,
  audience: string,
): Promise<void> {
  await tx.query({
    name: 'audience.release',
    text: `delete from audience_claims
           where tenant_id = $1 and holder = $2 and (application_id = $3 or resource_id = $3)`,
    values: [tenantId, holder, id],
  })
  if (holder === 'application' && audience === defaultAudience(id)) return
  const key = audienceKey(audience)
  if (key.startsWith(GIVEN)) throw new AudienceTaken(`this service gives ${key}`)
  // Two tenants that claim an audience in the same moment, one for an application and one for a resource.
  await lockUntilEnd(tx, { kind: 'audiences', tenantId: null, subject: key })
  const { rowCount } = await tx.query({
    name: 'audience.claim',
    text: `insert into audience_claims (audience_key, holder, tenant_id, application_id, resource_id)
           select $1, $2, $3::uuid, case when $2 = 'application' then $4::uuid end,
             case when $2 = 'resource' then $4::uuid end
           where not exists (select from audience_claims where audience_key = $1 and tenant_id <> $3)`,
    values: [key, holder, tenantId, id],
  })
  if (rowCount === 0) throw new AudienceTaken(`another tenant has the audience ${key}`)
}

/** True if an application or API resource of the deployment has the audience, in any spelling. */
export const isAudienceClaimed = (tx: Transaction, audience: string) =>
  onlyValue<boolean>(tx, {
    name: 'audience.is_claimed',
    text: 'select exists (select from audience_claims where audience_key = $1) as claimed',
    values: [audienceKey(audience)],
  })
