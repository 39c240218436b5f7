/** Documents of other hosts, fetched once and shared by all processes. They are public and belong to no tenant. */
import { execute, firstRow, type Transaction } from '../platform/sql.js'
import { removing } from '../platform/portable/expiry.js'

export type RemoteDocumentKind = 'client' | 'keys'

export type RemoteDocumentRow = {
  readonly url: string
  readonly kind: RemoteDocumentKind
  readonly document: Readonly<Record<string, unknown>>
  /** The digest of its canonical JSON, in lower-case hex. */
  readonly sha256: string
  readonly fetchedAt: Date
  readonly freshUntil: Date
}

export const findRemoteDocument = (tx: Transaction, kind: RemoteDocumentKind, url: string) =>
  firstRow<RemoteDocumentRow>(tx, {
    name: 'remote_document.find',
    text: `select url, kind, document, sha256, fetched_at as "fetchedAt",
             fresh_until as "freshUntil"
           from remote_documents where kind = $1 and url = $2`,
    values: [kind, url],
  })

/** Stores what was fetched last. */
export const storeRemoteDocument = (tx: Transaction, row: RemoteDocumentRow) =>
  execute(tx, {
    name: 'remote_document.store',
    text: `insert into remote_documents as d (url, kind, document, sha256, fetched_at, fresh_until)
           values ($1, $2, $3, $4, $5, $6)
           on conflict (kind, url) do update set document = excluded.document,
             sha256 = excluded.sha256, fetched_at = excluded.fetched_at,
             fresh_until = excluded.fresh_until
           where d.fetched_at <= excluded.fetched_at`,
    values: [
      row.url,
      row.kind,
      JSON.stringify(row.document),
      row.sha256,
      row.fetchedAt,
      row.freshUntil,
    ],
  })

/** Deletes up to `limit` documents that were fresh until `before`. */
export const removeEndedRemoteDocuments = removing(
  'remote_document.remove_ended',
  'remote_documents',
  'fresh_until',
  '(kind, url)',
)
