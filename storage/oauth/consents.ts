/** Consents that users gave to applications, stored until they are withdrawn. */
import { allRows, execute, firstValue, onlyValue, type Transaction } from '../platform/sql.js'

type ConsentKey = {
  readonly tenantId: string
  readonly subject: string
  readonly clientId: string
}

/** What a user consented to before: for the client, and for the client at API resources. */
export type ConsentsBefore = {
  readonly scopes: readonly string[]
  readonly ofResources: readonly {
    readonly resourceId: string
    readonly scopes: readonly string[]
  }[]
}

/** The consent for the client and those for these API resources. */
export async function findConsents(
  tx: Transaction,
  key: ConsentKey,
  resourceIds: readonly string[],
): Promise<ConsentsBefore> {
  const scopes = await consentedScopes(tx, key)
  if (resourceIds.length === 0) return { scopes, ofResources: [] }
  const { rows } = await tx.query<{ resourceId: string; scopes: string[] }>({
    name: 'consent.of_resources',
    text: `select resource_id as "resourceId", scopes from resource_consents
           where tenant_id = $1 and subject = $2 and client_id = $3 and resource_id = any($4)
             and not asks_again`,
    values: [key.tenantId, key.subject, key.clientId, resourceIds],
  })
  return { scopes, ofResources: rows }
}

/** True while the user has a consent to the application, for itself or for API resources. */
export const hasConsent = (tx: Transaction, { tenantId, subject, clientId }: ConsentKey) =>
  onlyValue<boolean>(tx, {
    name: 'consent.exists',
    text: `select exists (select from consents where tenant_id = $1 and subject = $2 and client_id = $3)
             or exists (select from resource_consents
               where tenant_id = $1 and subject = $2 and client_id = $3) as given`,
    values: [tenantId, subject, clientId],
  })

/** Adds scopes to the consent for an API resource. */
export const rememberResourceConsent = (
  tx: Transaction,
  { tenantId, subject, clientId }: ConsentKey,
  resourceId: string,
  scopes: readonly string[],
  now: Date,
) =>
  execute(tx, {
    name: 'consent.remember_resource',
    text: `insert into resource_consents as c
             (tenant_id, subject, client_id, resource_id, scopes, created_at, updated_at)
           values ($1, $2, $3, $4, $5, $6, $6)
           on conflict (tenant_id, subject, client_id, resource_id) do update set updated_at = $6,
             asks_again = false,
             scopes = c.scopes || array(select unnest($5::text[]) except select unnest(c.scopes))`,
    values: [tenantId, subject, clientId, resourceId, scopes, now],
  })

/** The scopes that the user consented to. Empty without a consent. */
const consentedScopes = async (tx: Transaction, key: ConsentKey) =>
  (await firstValue<string[]>(tx, {
    name: 'consent.scopes',
    text: `select scopes from consents where tenant_id = $1 and subject = $2 and client_id = $3
             and not asks_again`,
    values: [key.tenantId, key.subject, key.clientId],
  })) ?? []

/** Adds scopes to the consent. */
export const rememberConsent = (
  tx: Transaction,
  { tenantId, subject, clientId }: ConsentKey,
  scopes: readonly string[],
  now: Date,
) =>
  execute(tx, {
    name: 'consent.remember',
    text: `insert into consents as c (tenant_id, subject, client_id, scopes, created_at, updated_at)
           values ($1, $2, $3, $4, $5, $5)
           on conflict (tenant_id, subject, client_id) do update set updated_at = $5,
             asks_again = false,
             scopes = c.scopes || array(select unnest($4::text[]) except select unnest(c.scopes))`,
    values: [tenantId, subject, clientId, scopes, now],
  })

type ConsentRow = {
  readonly clientId: string
  readonly clientName: string
  readonly scopes: string[]
  readonly createdAt: Date
  readonly updatedAt: Date
}

export const listConsents = (tx: Transaction, tenantId: string, subject: string) =>
  allRows<ConsentRow>(tx, {
    name: 'consent.list',
    text: `with given as (
             select client_id, scopes, created_at, updated_at, 0 as place from consents
             where tenant_id = $1 and subject = $2
             union all
             select client_id, scopes, created_at, updated_at, 1 from resource_consents
             where tenant_id = $1 and subject = $2)
           select coalesce(a.metadata_url, c.client_id::text) as "clientId",
             a.name as "clientName", c.scopes,
             c.created_at as "createdAt", c.updated_at as "updatedAt"
           from (select g.client_id, min(g.created_at) as created_at,
                   max(g.updated_at) as updated_at,
                   (select array_agg(scope order by at) from (
                      select scope, min(o.place * 10000 + s.at) as at
                      from given o cross join unnest(o.scopes) with ordinality s (scope, at)
                      where o.client_id = g.client_id group by scope) each) as scopes
                 from given g group by g.client_id) c
           join applications a on a.tenant_id = $1 and a.id = c.client_id
           order by c.updated_at desc, c.client_id`,
    values: [tenantId, subject],
  })

/**
 * Withdraws a consent and revokes every grant that depends on it, including unredeemed codes and
 * approvals.
 * @returns the revoked families. Undefined if there was no consent.
 */
export async function withdrawConsentRow(
  tx: Transaction,
  { tenantId, subject, clientId }: ConsentKey,
  now: Date,
): Promise<string[] | undefined> {
  const given = [tenantId, subject, clientId, now]
  // Waits for concurrent redemptions, so that the next statement sees their families.
  const { rows: known } = await tx.query<{ known: boolean }>({
    name: 'consent.withdraw',
    text: `with gone_of_client as (
             delete from consents where tenant_id = $1 and subject = $2 and client_id = $3
             returning 1),
           gone_of_resources as (
             delete from resource_consents where tenant_id = $1 and subject = $2 and client_id = $3
             returning 1),
           gone as (select from gone_of_client union all select from gone_of_resources),
           codes as (
             delete from authorization_codes
             where tenant_id = $1 and subject = $2 and client_id = $3 and redeemed_at is null
               and expires_at > $4 and exists (select from gone)),
           approvals as (
             update backchannel_requests set status = 'denied'
             where tenant_id = $1 and subject = $2 and client_id = $3 and status = 'approved'
               and expires_at > $4 and exists (select from gone))
           select exists (select from gone) as known`,
    values: given,
  })
  if (!known[0]!.known) return undefined
  const { rows } = await tx.query<{ id: string }>({
    name: 'consent.withdraw_families',
    text: `update refresh_families set revoked_at = $4, revoked_reason = 'consent_withdrawn'
           where tenant_id = $1 and subject = $2 and client_id = $3 and revoked_at is null
           returning id::text as id`,
    values: given,
  })
  return rows.map(({ id }) => id)
}
