/** Validates client metadata: members, scopes and referenced documents. */
import type { ScopeBounds } from '../../../storage/oauth/client-registration.js'
import type { ApplicationDraft } from '../clients/protocol.js'
import { draftFault, registrableScopes } from '../clients/rules.js'
import type { Documents } from '../../platform/outbound-http/documents.js'
import { SHARE_EXHAUSTED } from '../../platform/outbound-http/site-places.js'
import { type ReadMetadata, readMetadata, refused } from './metadata.js'
import type { ClientMetadata, MetadataRefused } from './protocol.js'

export type ValidateMetadataNeeds = {
  readonly documents: Pick<Documents, 'fetch' | 'faultOf'>
  readonly issuer: string
}

/**
 * Returns the metadata with the scopes that the client may have, or the first fault. The sector identifier document
 * counts too.
 */
export async function validateMetadata(
  needs: ValidateMetadataNeeds & {
    /** The scopes of API resources that are open to any client. */
    readonly resourceScopes: (draft: ApplicationDraft) => Promise<readonly string[]>
  },
  metadata: ClientMetadata,
  bounds: ScopeBounds,
  nameBefore?: string,
): Promise<ReadMetadata | MetadataRefused> {
  const requested = readMetadata(metadata, nameBefore)
  if (requested.tag === 'refused') return requested
  const resourceScopes = await needs.resourceScopes(requested.draft)
  const { sectorIdentifierUri } = requested
  const draft = {
    ...requested.draft,
    scopes: registrableScopes(requested.draft, bounds, resourceScopes),
  }
  const read = { ...requested, draft }
  const fault = draftFault(draft, resourceScopes)
  if (fault !== undefined) {
    const error = fault.error === 'invalid_redirect_uri' ? fault.error : 'invalid_client_metadata'
    return refused(`${fault.pointer.slice(1)}: ${fault.detail}`, error)
  }
  const unreachable = draft.jwksUri === undefined ? null : needs.documents.faultOf(draft.jwksUri)
  if (unreachable !== null) return refused(`jwks_uri: ${unreachable}`)
  return sectorIdentifierUri === null
    ? read
    : checkSectorIdentifier(needs, read, sectorIdentifierUri)
}

/** OpenID Connect Registration section 5: the document must list every redirect URI. */
async function checkSectorIdentifier(
  { documents }: ValidateMetadataNeeds,
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
