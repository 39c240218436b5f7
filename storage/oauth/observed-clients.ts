/** Clients that are identified by the URL of their metadata document, per tenant (Client ID Metadata Documents). */
import { lockUntilEnd } from '../platform/portable/locks.js'
import {
  allRows,
  changedRows,
  execute,
  firstRow,
  firstValue,
  type Transaction,
} from '../platform/sql.js'
import type { ApplicationRow } from './applications.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'

type ObservedClient = {
  /** Also the id of its application. */
  readonly id: string
  readonly documentSha256: string
  readonly lastSeenAt: Date
}

export const findObservedClient = (tx: Transaction, tenantId: string, clientId: string) =>
  firstRow<ObservedClient>(tx, {
    name: 'observed_client.find',
    text: `select id, document_sha256 as "documentSha256", last_seen_at as "lastSeenAt"
           from observed_clients where tenant_id = $1 and client_id = $2`,
    values: [tenantId, clientId],
  })

/** Serialises first uses of clients in one tenant until the transaction ends, so that they can be counted. */
export async function lockNewClients(tx: Transaction, tenantId: string): Promise<void> {
  await lockUntilEnd(tx, { kind: 'observed_clients', tenantId })
}

/**
 * The first sight of the client that leaves the hour next, if the tenant saw `limit` new clients within the hour
 * before `now`. Null if another one may come.
 */
export async function fullSince(
  tx: Transaction,
  tenantId: string,
  limit: number,
  now: Date,
): Promise<Date | null> {
  const { rows } = await tx.query<{ full: boolean; oldest: Date | null }>({
    name: 'observed_client.full_since',
    text: `select count(*) >= $2::integer as full, min(first_seen_at) as oldest from (
             select first_seen_at from observed_clients
             where tenant_id = $1 and first_seen_at > $3::timestamptz - interval '1 hour'
             order by first_seen_at desc limit greatest($2::integer, 1)) recent`,
    values: [tenantId, limit, now],
  })
  return rows[0]!.full ? (rows[0]!.oldest ?? now) : null
}

/** The members of the application that come from the document. */
export type DocumentMembers = Pick<
  ApplicationRow,
  | 'name'
  | 'clientType'
  | 'tokenEndpointAuthMethod'
  | 'redirectUris'
  | 'postLogoutRedirectUris'
  | 'backchannelLogoutUri'
  | 'allowedOrigins'
  | 'grantTypes'
  | 'scopes'
  | 'jwks'
  | 'jwksUri'
  | 'dpopBoundAccessTokens'
  | 'requirePushedAuthorizationRequests'
  | 'idTokenSignedResponseAlg'
>

export type Observation = {
  readonly tenantId: string
  readonly id: string
  readonly clientId: string
  readonly clientName: string | null
  readonly members: DocumentMembers
  readonly document: Readonly<Record<string, unknown>>
  readonly documentSha256: string
  readonly decisionSha256: string
  readonly now: Date
  readonly grantsUntil: Date
}

/** Inserts a client at its first use. False if the tenant knows it already. */
export async function insertObservedClient(tx: Transaction, o: Observation): Promise<boolean> {
  const m = o.members
  const { rowCount } = await tx.query({
    name: 'observed_client.insert_application',
    text: `insert into applications (tenant_id, id, metadata_url, audience, name, client_type,
             token_endpoint_auth_method, redirect_uris, post_logout_redirect_uris, allowed_origins,
             grant_types, response_types, scopes, jwks, jwks_uri, dpop_bound_access_tokens,
             require_pushed_authorization_requests, id_token_signed_response_alg, backchannel_logout_uri,
             require_pkce, loopback_any_port, created_at, updated_at)
           values ($1, $2::uuid, $3, 'urn:svc:application:' || $2::uuid::text, $4, $5, $6, $7, $8, $9, $10,
             '{code}', $11, $12, $13, $14, $15, $16, $17, true, true, $18, $18)
           on conflict (tenant_id, metadata_url) where metadata_url is not null do nothing`,
    values: [o.tenantId, o.id, o.clientId, ...memberValues(m), o.now],
  })
  if (rowCount === 0) return false
  await tx.query({
    name: 'observed_client.insert',
    text: `insert into observed_clients (tenant_id, id, client_id, client_name, document_sha256,
             decision_sha256, first_seen_at, last_seen_at, grants_until)
           values ($1, $2, $3, $4, $5, $6, $7, $7, $8)`,
    values: [
      o.tenantId,
      o.id,
      o.clientId,
      o.clientName,
      o.documentSha256,
      o.decisionSha256,
      o.now,
      o.grantsUntil,
    ],
  })
  await insertObservedDocument(tx, o)
  return true
}

type DocumentChange = {
  readonly previousSha256: string
  /** True if a member changed that consent and authentication depend on. */
  readonly decisive: boolean
}

/**
 * Writes a changed document to the client and its application. If the change is decisive, the next authorization
 * request of every user asks for consent again. Undefined if the client has this document already.
 */
export async function updateObservedClient(
  tx: Transaction,
  o: Observation,
): Promise<DocumentChange | undefined> {
  const { rows } = await tx.query<DocumentChange>({
    name: 'observed_client.update',
    text: `with before as materialized (
             select document_sha256, decision_sha256 from observed_clients
             where tenant_id = $1 and id = $2 and document_sha256 <> $4 for update),
           changed as (
             update observed_clients o set client_name = $3, document_sha256 = $4,
               decision_sha256 = $5, last_seen_at = greatest(last_seen_at, $6::timestamptz),
               grants_until = greatest(grants_until, $7::timestamptz)
             from before where o.tenant_id = $1 and o.id = $2
             returning before.document_sha256, before.decision_sha256),
           asking as (
             update consents set asks_again = true
             where tenant_id = $1 and client_id = $2
               and exists (select from changed where decision_sha256 <> $5)),
           asking_at_resources as (
             update resource_consents set asks_again = true
             where tenant_id = $1 and client_id = $2
               and exists (select from changed where decision_sha256 <> $5))
           select document_sha256 as "previousSha256", decision_sha256 <> $5 as decisive from changed`,
    values: [
      o.tenantId,
      o.id,
      o.clientName,
      o.documentSha256,
      o.decisionSha256,
      o.now,
      o.grantsUntil,
    ],
  })
  if (rows[0] === undefined) return undefined
  await tx.query({
    name: 'observed_client.update_application',
    text: `update applications set name = $3, client_type = $4, token_endpoint_auth_method = $5,
             redirect_uris = $6, post_logout_redirect_uris = $7, allowed_origins = $8,
             grant_types = $9, scopes = $10, jwks = $11, jwks_uri = $12,
             dpop_bound_access_tokens = $13, require_pushed_authorization_requests = $14,
             id_token_signed_response_alg = $15, backchannel_logout_uri = $16, updated_at = $17
           where tenant_id = $1 and id = $2`,
    values: [o.tenantId, o.id, ...memberValues(o.members), o.now],
  })
  await insertObservedDocument(tx, o)
  return rows[0]
}

const insertObservedDocument = (tx: Transaction, o: Observation) =>
  execute(tx, {
    name: 'observed_client.insert_document',
    text: `insert into observed_client_documents (tenant_id, id, document_sha256, document, first_seen_at)
           values ($1, $2, $3, $4, $5) on conflict do nothing`,
    values: [o.tenantId, o.id, o.documentSha256, JSON.stringify(o.document), o.now],
  })

/** Records a use of the client. */
export const touchObservedClient = (
  tx: Transaction,
  { tenantId, id, now, grantsUntil }: Pick<Observation, 'tenantId' | 'id' | 'now' | 'grantsUntil'>,
) =>
  execute(tx, {
    name: 'observed_client.touch',
    text: `update observed_clients set last_seen_at = greatest(last_seen_at, $3::timestamptz),
             grants_until = greatest(grants_until, $4::timestamptz)
           where tenant_id = $1 and id = $2`,
    values: [tenantId, id, now, grantsUntil],
  })

/** The document that the client had under this hash. */
export const findObservedDocument = (
  tx: Transaction,
  tenantId: string,
  id: string,
  sha256: string,
) =>
  firstValue<Record<string, unknown>>(tx, {
    name: 'observed_client.document',
    text: `select document from observed_client_documents
           where tenant_id = $1 and id = $2 and document_sha256 = $3`,
    values: [tenantId, id, sha256],
  })

/** The facts about a client for its consent page. */
type ObservedFacts = {
  readonly clientName: string | null
  readonly firstSeenAt: Date
  readonly documentSha256: string
  readonly logoUri: string | null
}

export const findObservedFacts = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<ObservedFacts>(tx, {
    name: 'observed_client.facts',
    text: `select c.client_name as "clientName", c.first_seen_at as "firstSeenAt",
             c.document_sha256 as "documentSha256", d.document ->> 'logo_uri' as "logoUri"
           from observed_clients c left join observed_client_documents d
             on d.tenant_id = c.tenant_id and d.id = c.id and d.document_sha256 = c.document_sha256
           where c.tenant_id = $1 and c.id = $2`,
    values: [tenantId, id],
  })

type ObservedClientRow = {
  readonly id: string
  readonly clientId: string
  readonly clientName: string | null
  readonly documentSha256: string
  readonly firstSeenAt: Date
  readonly lastSeenAt: Date
  /** Grants that are neither revoked nor expired, and whose session is open. */
  readonly liveGrants: number
  /** The same as `firstSeenAt`: the order of the list. */
  readonly createdAt: Date
}

/** One page, newest first, after the row of `firstSeenAt` and `id`. */
export const listObservedClientRows = (
  tx: Transaction,
  tenantId: string,
  limit: number,
  after: { readonly createdAt: Date; readonly id: string } | null,
  now: Date,
) =>
  allRows<ObservedClientRow>(tx, {
    name: 'observed_client.list',
    text: `select ${columnsOf('id client_id client_name document_sha256 first_seen_at last_seen_at', 'o')},
             o.first_seen_at as "createdAt",
             (select count(*) from refresh_families f
                join sessions s on s.tenant_id = f.tenant_id and s.id = f.session_id
              where f.tenant_id = o.tenant_id and f.client_id = o.id and f.document_sha256 is not null
                and f.revoked_at is null and f.expires_at > $5 and s.ended_at is null)::integer
               as "liveGrants"
           from observed_clients o
           where o.tenant_id = $1
             and ($3::timestamptz is null or (o.first_seen_at, o.id) < ($3, $4::uuid))
           order by o.first_seen_at desc, o.id desc limit $2`,
    values: [tenantId, limit, after?.createdAt ?? null, after?.id ?? null, now],
  })

/**
 * Deletes the client with its codes, requests and consents, and revokes its grants.
 * @returns its client_id and the revoked families. Undefined if it does not exist.
 */
export async function deleteObservedClientRow(
  tx: Transaction,
  tenantId: string,
  id: string,
  now: Date,
): Promise<{ readonly clientId: string; readonly families: readonly string[] } | undefined> {
  // The deletion of the application waits for redemptions of its codes, so the next statement sees their families.
  const { rows } = await tx.query<{ clientId: string }>({
    name: 'observed_client.delete',
    text: `delete from applications where tenant_id = $1 and id = $2 and metadata_url is not null
           returning metadata_url as "clientId"`,
    values: [tenantId, id],
  })
  if (rows[0] === undefined) return undefined
  const revoked = await tx.query<{ id: string }>({
    name: 'observed_client.revoke_grants',
    text: `update refresh_families set revoked_at = $3, revoked_reason = 'client_deleted'
           where tenant_id = $1 and client_id = $2 and document_sha256 is not null
             and revoked_at is null
           returning id::text as id`,
    values: [tenantId, id, now],
  })
  return { clientId: rows[0].clientId, families: revoked.rows.map((row) => row.id) }
}

/**
 * Deletes the clients that a metadata document identifies, in the tenant or in all, with their grants. Their tokens become
 * invalid. The transaction crosses tenants. @returns the ids of the clients and of their families.
 */
export async function deleteClientsOfDocument(
  tx: Transaction,
  clientId: string,
  tenantId: string | null,
  now: Date,
): Promise<readonly string[]> {
  const { rows } = await tx.query<{ tenantId: string; id: string }>({
    name: 'observed_client.of_document',
    text: `select tenant_id as "tenantId", id from applications
           where metadata_url = $1 and ($2::uuid is null or tenant_id = $2)
           order by tenant_id`,
    values: [clientId, tenantId],
  })
  const ended: string[] = []
  for (const { tenantId: of, id } of rows)
    ended.push(id, ...((await deleteObservedClientRow(tx, of, id, now))?.families ?? []))
  return ended
}

/** Deletes up to `limit` clients whose last use and last grant ended before `before`. */
export const removeUnusedObservedClients = (tx: Transaction, before: Date, limit: number) =>
  changedRows(tx, {
    name: 'observed_client.remove_unused',
    text: `delete from applications where (tenant_id, id) in (
             select o.tenant_id, o.id from observed_clients o
             where o.grants_until < $1 and o.last_seen_at < $1
               and not exists (select from refresh_families f
                 where f.tenant_id = o.tenant_id and f.client_id = o.id
                   and f.document_sha256 is not null and f.revoked_at is null
                   and f.expires_at >= $1)
             order by o.grants_until limit $2 for update skip locked)`,
    values: [before, limit],
  })

/** The values of the members, in the order of both statements that write them. */
function memberValues(m: DocumentMembers): readonly unknown[] {
  return [
    m.name,
    m.clientType,
    m.tokenEndpointAuthMethod,
    m.redirectUris,
    m.postLogoutRedirectUris,
    m.allowedOrigins,
    m.grantTypes,
    m.scopes,
    m.jwks === null ? null : JSON.stringify(m.jwks),
    m.jwksUri,
    m.dpopBoundAccessTokens,
    m.requirePushedAuthorizationRequests,
    m.idTokenSignedResponseAlg,
    m.backchannelLogoutUri,
  ]
}
