/** Pending authorization requests: pushed (RFC 9126), or waiting for sign-in and consent. */
import { execute, firstRow, type Transaction } from '../platform/sql.js'
import { removing } from '../platform/portable/expiry.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'

type NewAuthorizationRequest<Request> = {
  readonly tenantId: string
  readonly id: string
  /** SHA-256 of the handle or request_uri. */
  readonly handleSha256: Uint8Array
  readonly clientId: string
  /** The pushed request that it continues. */
  readonly pushedId: string | null
  /** Plain JSON. */
  readonly request: Request
  readonly createdAt: Date
  readonly expiresAt: Date
}

export async function insertAuthorizationRequest<Request>(
  tx: Transaction,
  row: NewAuthorizationRequest<Request>,
): Promise<void> {
  await tx.query({
    name: 'authorization_request.insert',
    text: `insert into authorization_requests (tenant_id, id, handle_sha256, client_id, pushed_id,
             request, created_at, expires_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    values: [
      row.tenantId,
      row.id,
      Buffer.from(row.handleSha256),
      row.clientId,
      row.pushedId,
      JSON.stringify(row.request),
      row.createdAt,
      row.expiresAt,
    ],
  })
}

type AuthorizationRequestRow<Request> = {
  readonly tenantId: string
  readonly id: string
  readonly clientId: string
  readonly pushedId: string | null
  readonly request: Request
  readonly createdAt: Date
}

/** Finds a pending request. Its tenant is unknown, so the transaction crosses tenants. */
export const findAuthorizationRequest = <Request>(
  tx: Transaction,
  handleSha256: Uint8Array,
  now: Date,
) =>
  firstRow<AuthorizationRequestRow<Request>>(tx, {
    name: 'authorization_request.find',
    text: `select ${columnsOf('tenant_id id client_id pushed_id request created_at')}
           from authorization_requests
           where handle_sha256 = $1 and consumed_at is null and expires_at > $2`,
    values: [Buffer.from(handleSha256), now],
  })

type EndedRequest<Request> = Pick<AuthorizationRequestRow<Request>, 'clientId' | 'request'> & {
  /** Encrypted. Null if no browser can get it again. */
  readonly answer: Uint8Array | null
  /** Null if it is pending or expired. */
  readonly consumedAt: Date | null
}

/** Finds a consumed or expired request while its row is kept. */
export const findEndedAuthorizationRequest = <Request>(tx: Transaction, handleSha256: Uint8Array) =>
  firstRow<EndedRequest<Request>>(tx, {
    name: 'authorization_request.find_ended',
    text: `select ${columnsOf('client_id request answer consumed_at')} from authorization_requests
           where handle_sha256 = $1`,
    values: [Buffer.from(handleSha256)],
  })

/**
 * Consumes all of the requests, or none. Returns true for the one call that consumed them. Otherwise
 * the caller rolls back. An expired pushed request is accepted, since it was opened in time. `answer` is stored encrypted.
 */
export async function consumeAuthorizationRequests(
  tx: Transaction,
  tenantId: string,
  ids: readonly string[],
  now: Date,
  answer: Uint8Array | null,
): Promise<boolean> {
  const { rowCount } = await tx.query({
    name: 'authorization_request.consume',
    text: `update authorization_requests set consumed_at = $3, answer = $4
           where tenant_id = $1 and id = any($2) and consumed_at is null`,
    values: [tenantId, ids, now, answer === null ? null : Buffer.from(answer)],
  })
  return rowCount === ids.length
}

/** Notes the session that the user chose for a pending request. */
export const chooseSession = (tx: Transaction, tenantId: string, id: string, sessionId: string) =>
  execute(tx, {
    name: 'authorization_request.choose_session',
    text: `update authorization_requests
           set request = request || jsonb_build_object('chosenSession', $3::text)
           where tenant_id = $1 and id = $2 and consumed_at is null`,
    values: [tenantId, id, sessionId],
  })

/** Deletes up to `limit` requests that ended before `before`. */
export const removeEndedAuthorizationRequests = removing(
  'authorization_request.remove_ended',
  'authorization_requests',
)
