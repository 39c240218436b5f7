/** Whether metadata may become a client: its members, its scopes, and what it points to. */
import { draftFault, scopesBeyond } from '../clients/rules.js'
import type { Documents } from '../../platform/outbound-http/documents.js'
import { type ReadMetadata, readMetadata, refused } from './metadata.js'
import type { ClientMetadata, MetadataRefused } from './protocol.js'

export type JudgeNeeds = {
  readonly documents: Pick<Documents, 'fetch' | 'faultOf'>
  readonly issuer: string
}

/** Everything that can be wrong with metadata, the documents it points to included. */
export async function judge(
  needs: JudgeNeeds,
  metadata: ClientMetadata,
  scopes: readonly string[],
): Promise<ReadMetadata | MetadataRefused> {
  const read = readMetadata(metadata)
  if (read.tag === 'refused') return read
  const { draft, sectorIdentifierUri } = read
  const fault = draftFault(draft, needs.issuer)
  if (fault !== undefined) {
    const error = fault.error === 'invalid_redirect_uri' ? fault.error : 'invalid_client_metadata'
    return refused(`${fault.pointer.slice(1)}: ${fault.detail}`, error)
  }
  const beyond = scopesBeyond(draft, scopes)
  if (beyond.length > 0) return refused(`scope: not to be registered for ${beyond.join(' ')}`)
  const unreachable = draft.jwksUri === undefined ? null : needs.documents.faultOf(draft.jwksUri)
  if (unreachable !== null) return refused(`jwks_uri: ${unreachable}`)
  return sectorIdentifierUri === null ? read : judgeSector(needs, read, sectorIdentifierUri)
}

/** OpenID Connect Registration section 5: the file names every redirect URI. */
async function judgeSector(
  { documents }: JudgeNeeds,
  read: ReadMetadata,
  uri: string,
): Promise<ReadMetadata | MetadataRefused> {
  const fetched = await documents.fetch(uri)
  if (fetched.tag === 'failed') return refused(`sector_identifier_uri: ${fetched.fault}`)
  const { document } = fetched
  const listed: readonly unknown[] = Array.isArray(document) ? document : []
  const missing = read.draft.redirectUris.find((one) => !listed.includes(one))
  if (missing === undefined) return read
  return refused('sector_identifier_uri: the file does not list every redirect URI')
}
