/**
 * Documents of other parties that tenants name. A host that never answers holds a place of the actor that waits for it,
 * so a tenant holds few of them, and requests beyond its share fail immediately.
 */
import {
  FairShare,
  inPlace,
  type ShareCounts,
} from '../../../runtime/kernel/fairness/fair-share.js'
import type { TenantGroups } from '../tenant-groups.js'
import type { Documents, Fetched } from './documents.js'
import { SHARE_EXHAUSTED } from './site-places.js'

const BUSY: Fetched = { tag: 'failed', fault: SHARE_EXHAUSTED }

export type FairDocumentsNeeds = {
  readonly documents: Pick<Documents, 'fetch'>
  readonly groups: Pick<TenantGroups, 'of'>
  readonly counts?: ShareCounts | undefined
}

type FairDocumentsBounds = {
  /** Names the places in metrics. */
  readonly resource: string
  /** Documents that are waited for at the same time. */
  readonly total: number
  readonly perSenderMax: number
}

/** Who names a document. */
export type Sender = {
  readonly tenantId: string
  /** What holds the place. Default: the tenant. */
  readonly key?: string | undefined
}

export function fairDocuments(
  { documents, groups, counts }: FairDocumentsNeeds,
  { resource, total, perSenderMax }: FairDocumentsBounds,
): (sender: Sender) => Pick<Documents, 'fetch'> {
  const levels = [{ name: 'sender', max: perSenderMax }]
  const places = new FairShare({ resource, total, levels, counts })
  return ({ tenantId, key = tenantId }) => ({
    async fetch(url, options) {
      const of = await groups.of(tenantId)
      return inPlace(places, key, of, BUSY, () => documents.fetch(url, options))
    },
  })
}
