/** The syntax of a client_id that is the URL of a metadata document (Client ID Metadata Documents, section 3). */
import { httpsUrl } from '../../../../domain/entities/https-url.js'

/** A segment `.` or `..`, also percent-encoded: the URL parser resolves both. */
const DOT_SEGMENT = /(?:^|\/)(?:\.|%2e){1,2}(?=\/|$)/i

export type MetadataUrls = {
  /** True for a client_id that names a metadata document. Ids of registered clients are UUIDs. */
  isUrl(clientId: string): boolean
  /** The agent whose own document the URL names. Null for a document of another host. */
  agentOf(url: string): AgentDocument | null
}

type AgentDocument = { readonly agentId: string; readonly name: 'client' | 'jwks' }

const AGENT_PATH =
  /^\/agents\/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\/(client|jwks)\.json$/

export function metadataUrls(issuer: string): MetadataUrls {
  return {
    isUrl: (clientId) =>
      clientId.startsWith('https://') || clientId.startsWith(`${issuer}/agents/`),
    agentOf(url) {
      if (!url.startsWith(issuer)) return null
      const found = AGENT_PATH.exec(url.slice(issuer.length))
      return found === null ? null : { agentId: found[1]!, name: found[2] as AgentDocument['name'] }
    },
  }
}

/** The fault of the URL as a sentence, or undefined. The URL is compared as a string everywhere, never normalised. */
export function clientIdFault(clientId: string): string | undefined {
  if (httpsUrl(clientId, { query: true, http: 'of all hosts' }) === null)
    return 'client_id is not an https URL of at most 2048 characters without user and fragment'
  const path = /\/\/[^/?]+([^?]*)/.exec(clientId)![1]!
  if (path === '') return 'client_id must have a path'
  if (DOT_SEGMENT.test(path)) return 'client_id must not have dot segments'
  return undefined
}

/** The host of the URL, which is the name of the party on all pages. */
export function hostOfClientId(clientId: string): string {
  return new URL(clientId).host
}
