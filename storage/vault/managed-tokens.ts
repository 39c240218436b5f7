/**
 * Managed access tokens of `oauth2` credentials, and the refresh lease of a process. One
 * statement claims a lease, also an expired one of another process.
 */
import { partsOf, stamped } from '../platform/sealing/stamps.js'
import { execute, firstRow, isChanged, type Transaction } from '../platform/sql.js'

export type ClientAuth = 'basic' | 'post'

export type ManagedTokenRow = {
  /** Sealed; null before the first refresh. */
  token: Uint8Array | null
  obtainedAt: Date | null
  /** Null without `expires_in`. */
  expiresAt: Date | null
  clientAuth: ClientAuth | null
  /** The failure of the last attempt, returned to callers until `retryAt`. */
  failure: Readonly<Record<string, unknown>> | null
  retryAt: Date | null
  /** An answer of the token endpoint, sealed, until its tokens are stored. */
  answer: Uint8Array | null
}

/** Associated data of a sealed answer, which binds it to its row. */
export const tokenAnswerContext = (credentialId: string) => ({
  rewritten: `vault_managed_token:${credentialId}:answer`,
})

/** Associated data of a sealed token, which binds it to its row. */
export const managedTokenContext = (credentialId: string) => ({
  rewritten: `vault_managed_token:${credentialId}:token`,
})

export const findManagedToken = (tx: Transaction, tenantId: string, credentialId: string) =>
  firstRow<ManagedTokenRow>(tx, {
    name: 'managed_token.find',
    text: `select ${stamped('token')} as token, obtained_at as "obtainedAt", expires_at as "expiresAt",
             client_auth as "clientAuth", failure, retry_at as "retryAt", ${stamped('answer')} as answer
           from vault_managed_tokens where tenant_id = $1 and credential_id = $2`,
    values: [tenantId, credentialId],
  })

/** Claims the lease; false while another process holds it. */
export const claimRefresh = (
  tx: Transaction,
  tenantId: string,
  credentialId: string,
  { refresher, now, until }: { refresher: string; now: Date; until: Date },
) =>
  isChanged(tx, {
    name: 'managed_token.claim',
    text: `insert into vault_managed_tokens as m
             (tenant_id, credential_id, refresher, refreshing_until)
           values ($1, $2, $3, $5)
           on conflict (tenant_id, credential_id) do update
             set refresher = excluded.refresher, refreshing_until = excluded.refreshing_until
             where m.refreshing_until is null or m.refreshing_until <= $4`,
    values: [tenantId, credentialId, refresher, now, until],
  })

/** Releases the lease, if `refresher` still holds it. */
export const releaseRefresh = (
  tx: Transaction,
  tenantId: string,
  credentialId: string,
  refresher: string,
) =>
  execute(tx, {
    name: 'managed_token.release',
    text: `update vault_managed_tokens set refresher = null, refreshing_until = null
           where tenant_id = $1 and credential_id = $2 and refresher = $3`,
    values: [tenantId, credentialId, refresher],
  })

/** Keeps an answer until its tokens are stored. It needs no other row, so that no lock delays it. */
export const keepTokenAnswer = (
  tx: Transaction,
  tenantId: string,
  credentialId: string,
  refresher: string,
  answer: Uint8Array,
) => {
  const { sealed, stamp } = partsOf(answer)
  return execute(tx, {
    name: 'managed_token.keep_answer',
    text: `update vault_managed_tokens set answer = $4, answer_stamp = $5
           where tenant_id = $1 and credential_id = $2 and refresher = $3`,
    values: [tenantId, credentialId, refresher, sealed, stamp],
  })
}

type NewManagedToken = {
  readonly token: Uint8Array
  readonly obtainedAt: Date
  readonly expiresAt: Date | null
  readonly clientAuth: ClientAuth | null
}

/**
 * Stores a token and releases the lease of `refresher`. False if it no longer has the lease, and the stored token is newer:
 * the clock of the process that obtained that one may be ahead.
 */
export const keepManagedToken = (
  tx: Transaction,
  tenantId: string,
  credentialId: string,
  refresher: string,
  { token, obtainedAt, expiresAt, clientAuth }: NewManagedToken,
) => {
  const { sealed, stamp } = partsOf(token)
  return isChanged(tx, {
    name: 'managed_token.keep',
    text: `insert into vault_managed_tokens as m
             (tenant_id, credential_id, token, obtained_at, expires_at, client_auth, token_stamp)
           values ($1, $2, $4, $5, $6, $7, $8)
           on conflict (tenant_id, credential_id) do update
             set token = $4, token_stamp = $8, obtained_at = $5, expires_at = $6, client_auth = $7,
               failure = null, retry_at = null, answer = null, answer_stamp = null,
               refresher = case when m.refresher = $3 then null else m.refresher end,
               refreshing_until = case when m.refresher = $3 then null else m.refreshing_until end
             where m.refresher = $3 or m.obtained_at is null or m.obtained_at <= $5`,
    values: [tenantId, credentialId, refresher, sealed, obtainedAt, expiresAt, clientAuth, stamp],
  })
}

/** Stores a failed refresh and releases the lease of `refresher`. */
export const keepRefreshFailure = (
  tx: Transaction,
  tenantId: string,
  credentialId: string,
  refresher: string,
  { failure, retryAt }: { failure: Readonly<Record<string, unknown>>; retryAt: Date },
) =>
  execute(tx, {
    name: 'managed_token.keep_failure',
    text: `update vault_managed_tokens
           set failure = $4, retry_at = $5, refresher = null, refreshing_until = null
           where tenant_id = $1 and credential_id = $2 and refresher = $3`,
    values: [tenantId, credentialId, refresher, JSON.stringify(failure), retryAt],
  })

/**
 * A token that an API rejected is not used again, unless tokens are kept until a later time. It has ended for processes whose
 * clock is behind too.
 */
export const endManagedToken = (
  tx: Transaction,
  tenantId: string,
  credentialId: string,
  { obtainedAt, now }: { readonly obtainedAt: Date; readonly now: Date },
) =>
  execute(tx, {
    name: 'managed_token.end',
    text: `update vault_managed_tokens set expires_at = 'epoch'
           where tenant_id = $1 and credential_id = $2 and obtained_at = $3
             and (kept_until is null or kept_until <= $4)`,
    values: [tenantId, credentialId, obtainedAt, now],
  })

/** Until then no rejection ends a token. False if another token than this one is stored. */
export const keepManagedTokenUntil = (
  tx: Transaction,
  tenantId: string,
  credentialId: string,
  { obtainedAt, until }: { readonly obtainedAt: Date; readonly until: Date },
) =>
  isChanged(tx, {
    name: 'managed_token.keep_until',
    text: `update vault_managed_tokens set kept_until = $4
           where tenant_id = $1 and credential_id = $2 and obtained_at = $3`,
    values: [tenantId, credentialId, obtainedAt, until],
  })

/** Deletes a token that was obtained before `before`. */
export const dropManagedToken = (
  tx: Transaction,
  tenantId: string,
  credentialId: string,
  before: Date,
) =>
  execute(tx, {
    name: 'managed_token.drop',
    text: `update vault_managed_tokens set token = null, obtained_at = null, expires_at = null
           where tenant_id = $1 and credential_id = $2 and obtained_at < $3`,
    values: [tenantId, credentialId, before],
  })

/** Deletes the token of a credential whose secret was rotated or revoked. */
export const forgetManagedToken = (tx: Transaction, tenantId: string, credentialId: string) =>
  execute(tx, {
    name: 'managed_token.forget',
    text: `delete from vault_managed_tokens where tenant_id = $1 and credential_id = $2`,
    values: [tenantId, credentialId],
  })
