/** Validates client metadata: members, scopes and referenced documents. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { ScopeBounds } from '../../../../storage/oauth/client-registration.js'
import type { Database } from '../../../../storage/platform/sql.js'
import { resourceScopesFor } from '../registered/resource-scopes.js'
import { draftFault, registrableScopes } from '../registered/rules.js'
import type { Documents } from '../../../platform/outbound-http/documents.js'
import type { Sender } from '../../../platform/outbound-http/fair-documents.js'
import { SHARE_EXHAUSTED } from '../../../platform/outbound-http/site-places.js'
import { type ReadMetadata, readMetadata, refused } from './metadata.js'
import type { ClientMetadata, MetadataRefused } from './protocol.js'

export type ValidateMetadataNeeds = {
  readonly database: Database
  readonly documents: Pick<Documents, 'faultOf'>
  /** Fetches documents in the share of the tenant. */
  readonly documentsOf: (sender: Sender) => Pick<Documents, 'fetch'>
}

/**
 * Returns the metadata with the scopes that the client may have, or the first fault. The sector identifier document
 * counts too. `name` is the stored one.
 */
export async function validateMetadata(
  { database, documents, documentsOf }: ValidateMetadataNeeds,
  metadata: ClientMetadata,
  of: { readonly tenantId: string; readonly bounds: ScopeBounds; readonly name?: string },
  { signal }: MessageContext,
): Promise<ReadMetadata | MetadataRefused> {
  const { tenantId, bounds, name } = of
  const requested = readMetadata(metadata, name)
  if (requested.tag === 'refused') return requested
  const resourceScopes = await resourceScopesFor(
    database,
    tenantId,
    requested.draft,
    'open',
    signal,
  )
  const { sectorIdentifierUri } = requested
  const draft = {
    ...requested.draft,
    scopes: registrableScopes(requested.draft, bounds, resourceScopes),
  }
  const read = { ...requested, draft }
  const fault = await draftFault(draft, resourceScopes, documents.faultOf)
  if (fault !== undefined) {
    const error = fault.error === 'invalid_redirect_uri' ? fault.error : 'invalid_client_metadata'
    return refused(`${fault.pointer.slice(1)}: ${fault.detail}`, error)
  }
  return sectorIdentifierUri === null
    ? read
    : checkSectorIdentifier(documentsOf({ tenantId }), read, sectorIdentifierUri)
}

/** OpenID Connect Registration section 5: the document must list every redirect URI. */
async function checkSectorIdentifier(
  documents: Pick<Documents, 'fetch'>,
  read: ReadMetadata,
  uri: string,
): Promise<ReadMetadata | MetadataRefused> {
  const fetched = await documents.fetch(uri)
  if (fetched.tag === 'failed') {
    const description = `sector_identifier_uri: ${fetched.fault}`
    return fetched.fault === SHARE_EXHAUSTED
      ? refused(description, SHARE_EXHAUSTED)
      : refused(description)
  }
  const { document } = fetched
  const listed: readonly unknown[] = Array.isArray(document) ? document : []
  const missing = read.draft.redirectUris.find((one) => !listed.includes(one))
  if (missing === undefined) return read
  return refused('sector_identifier_uri: the document does not list every redirect URI')
}
