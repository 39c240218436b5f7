/** The clients that a tenant knows by their metadata documents (docs/guides/oauth/client-id-metadata-documents.md). */
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { Caller } from '../../../domain/audit.js'
import type { TenantId } from '../../../domain/ids.js'
import type { ListCursor, Page } from '../../../domain/paging.js'

export type ObservedClientsProtocol = {
  listObservedClients: Ask<ListObservedClients, ObservedClientsListed>
  /** Ends the grants and tokens of the client. It may come again. */
  deleteObservedClient: Ask<
    { readonly caller: Caller; readonly id: string },
    { readonly tag: 'removed' } | { readonly tag: 'unknown' }
  >
}

export type ObservedClient = {
  readonly id: string
  readonly clientId: string
  /** What the client calls itself. Not verified. */
  readonly clientName: string | null
  readonly documentSha256: string
  readonly firstSeenAt: Date
  readonly lastSeenAt: Date
  readonly liveGrants: number
}
export type ListObservedClients = Page & {
  readonly tenantId: TenantId
}
export type ObservedClientsListed = {
  readonly tag: 'listed'
  readonly clients: readonly ObservedClient[]
  readonly next: ListCursor | null
}

export const observedClients = address<ObservedClientsProtocol>('observed-clients', {
  idempotent: ['listObservedClients'],
})
