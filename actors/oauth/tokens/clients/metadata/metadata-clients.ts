/**
 * Clients that are identified by the URL of their metadata document (Client ID Metadata Documents). A client needs no
 * registration: at its first use in a tenant the service writes an application from the document, and from then on it
 * is a client like any other. See docs/reference/oauth.md.
 */
import type { ActorRef, MessageContext } from '../../../../../runtime/kernel/actor.js'
import type { Random } from '../../../../../runtime/kernel/random.js'
import { findAgentProfile } from '../../../../../storage/agents/agent-profiles.js'
import {
  findObservedClient,
  findObservedDocument,
  fullSince,
  insertObservedClient,
  lockNewClients,
  type Observation,
  touchObservedClient,
  updateObservedClient,
} from '../../../../../storage/oauth/observed-clients.js'
import { appendEvents } from '../../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../../storage/platform/sql.js'
import {
  agentClientDocument,
  agentKeySet,
  type AgentProfile,
} from '../../../../domain/agents/documents.js'
import { httpsUrl } from '../../../../domain/entities/https-url.js'
import { catalogued } from '../../../../domain/events.js'
import type { TenantsProtocol } from '../../../../identity/users/tenants/protocol.js'
import type { Documents } from '../../../../platform/outbound-http/documents.js'
import { clientIdFault, type MetadataUrls, metadataUrls } from './client-id.js'
import { type ClientDocument, type ReadDocument, readClientDocument } from './document.js'
import { admitsHost } from './policy.js'
import type { RemoteDocuments } from '../../../../platform/outbound-http/remote-documents.js'
import { inTenant } from '../../../../platform/in-tenant.js'
import type { WriteNeeds } from '../../../../platform/write-needs.js'

const HOUR_MS = 3_600_000
/** How precise `last_seen_at` is. */
const SEEN_MS = 60_000

export type Admitted = {
  readonly tag: 'admitted'
  /** The id of its application. */
  readonly id: string
  readonly document: ClientDocument
}
export type NotAdmitted =
  | {
      readonly tag: 'not_admitted'
      /** `faulty`: the client_id, its document or the policy; it stays so until one of them changes. */
      readonly why: 'faulty' | 'unreachable'
      readonly description: string
    }
  | {
      readonly tag: 'not_admitted'
      readonly why: 'rate_limited'
      readonly description: string
      readonly retryAfterSecs: number
    }

export interface MetadataClients {
  /** True for a client_id that names a metadata document. Always false if the feature is off. */
  isUrl(clientId: string): boolean
  /**
   * The client with its current document, written to the tenant.
   * @param live true for a use of a grant that exists: a stale document serves while its host is away.
   */
  admit(
    clientId: string,
    tenantId: string,
    live: boolean,
    context: MessageContext,
  ): Promise<Admitted | NotAdmitted>
  /** The client under the document of an earlier decision, without a fetch. Null if it is not stored. */
  admitAs(
    clientId: string,
    of: { readonly tenantId: string; readonly id: string; readonly documentSha256: string },
    context: MessageContext,
  ): Promise<Admitted | NotAdmitted | null>
  /** The keys at a `jwks_uri`. Null if its host is away and no copy is left. */
  keysAt(jwksUri: string, refresh: boolean): Promise<readonly unknown[] | null>
}

type MetadataClientsNeeds = WriteNeeds & {
  readonly tenants: ActorRef<TenantsProtocol>
  readonly remote: RemoteDocuments
  /** Judges URLs inside of documents. */
  readonly documents: Pick<Documents, 'faultOf'>
  readonly issuer: string
  /** `oidc.client_id_metadata_enabled`. */
  readonly enabled: boolean
  /** `jwt.refresh_token_lifetime_human_secs`. */
  readonly grantSecsMax: number
}

type Means = MetadataClientsNeeds & { readonly urls: MetadataUrls }

export function createMetadataClients(needs: MetadataClientsNeeds): MetadataClients {
  const urls = metadataUrls(needs.issuer)
  const means = { ...needs, urls }
  return {
    isUrl: (clientId) => needs.enabled && urls.isUrl(clientId),
    admit: (...asked) => admit(means, ...asked),
    admitAs: (...asked) => admitAs(means, ...asked),
    keysAt: (...asked) => keysAt(means, ...asked),
  }
}

async function admit(
  means: Means,
  ...[clientId, tenantId, live, context]: Parameters<MetadataClients['admit']>
): Promise<Admitted | NotAdmitted> {
  const { database, clock, random, grantSecsMax } = means
  const judged = await refusedUnfetched(means, clientId, tenantId, context)
  if ('refused' in judged) return judged.refused
  const { policy } = judged
  const now = clock.now()
  // A new client is counted before its host is asked, and again when it is stored.
  const before = await inTenant(database, tenantId, context, async (tx) =>
    (await findObservedClient(tx, tenantId, clientId)) === undefined
      ? fullSince(tx, tenantId, policy.maxNewClientsPerHour, now)
      : null,
  )
  if (before !== null) return tooMany(before, now)
  const document = await currentDocument(means, clientId, tenantId, live)
  if (document.tag === 'not_admitted') return document
  if (document.tag === 'faulty') return faulty(document.fault)
  if (policy.requireAuth && document.members.tokenEndpointAuthMethod === 'none')
    return faulty('this tenant admits only clients that authenticate with private_key_jwt')
  const observation: Observation = {
    tenantId,
    id: random.uuid(),
    clientId,
    clientName: document.clientName,
    members: document.members,
    document: document.document,
    documentSha256: document.sha256,
    decisionSha256: document.decisionSha256,
    now,
    grantsUntil: new Date(now.getTime() + grantSecsMax * 1000),
  }
  const observed = await inTenant(database, tenantId, context, (tx) =>
    observe(tx, random, observation, policy.maxNewClientsPerHour, context.requestId),
  )
  if ('fullSince' in observed) return tooMany(observed.fullSince, now)
  return { tag: 'admitted', id: observed.id, document }
}

async function admitAs(
  means: Means,
  ...[clientId, { tenantId, id, documentSha256 }, context]: Parameters<MetadataClients['admitAs']>
): Promise<Admitted | NotAdmitted | null> {
  const judged = await refusedUnfetched(means, clientId, tenantId, context)
  if ('refused' in judged) return judged.refused
  const stored = await inTenant(means.database, tenantId, context, (tx) =>
    findObservedDocument(tx, tenantId, id, documentSha256),
  )
  if (stored === undefined) return null
  const document = readDocument(means, clientId, stored)
  if (document.tag === 'faulty') return faulty(document.fault)
  return { tag: 'admitted', id, document }
}

async function keysAt(
  { database, remote, urls }: Means,
  jwksUri: string,
  refresh: boolean,
): Promise<readonly unknown[] | null> {
  const own = urls.agentOf(jwksUri)
  if (own !== null) {
    // The agent may be of any tenant.
    const agent = await database.system((tx) => findAgentProfile<AgentProfile>(tx, own.agentId), {
      pool: 'identity',
    })
    return agent === undefined ? [] : agentKeySet(agent).keys
  }
  const found = await remote.get({
    kind: 'keys',
    url: jwksUri,
    stale: true,
    refresh,
    check: (document) =>
      Array.isArray((document as { keys?: unknown } | null)?.keys) ? undefined : 'not a JWK Set',
  })
  if (found.tag === 'unreachable') return null
  return found.tag === 'found' ? (found.document['keys'] as readonly unknown[]) : []
}

/** The fault of the URL or of the tenant's policy, which are judged before any fetch. */
async function refusedUnfetched(
  { tenants }: Means,
  clientId: string,
  tenantId: string,
  context: MessageContext,
) {
  const fault = clientIdFault(clientId)
  if (fault !== undefined) return { refused: faulty(fault) }
  const found = await tenants.readTenantSettings({ tenantId }, context)
  const policy = found.tag === 'found' ? found.settings.clientIdMetadata : null
  if (policy === null || !admitsHost(policy, clientId))
    return { refused: faulty('this tenant does not admit clients of this host') }
  return { policy }
}

async function currentDocument(
  means: Means,
  clientId: string,
  tenantId: string,
  live: boolean,
): Promise<ReadDocument | NotAdmitted> {
  const { database, remote, urls, issuer } = means
  const own = urls.agentOf(clientId)
  if (own !== null) {
    if (own.name !== 'client') return faulty('client_id does not name a metadata document')
    // The agent may be of any tenant.
    const agent = await database.system(
      (tx) => findAgentProfile<AgentProfile>(tx, own.agentId, tenantId),
      { pool: 'identity' },
    )
    if (agent === undefined) return faulty('the agent does not exist or is not active')
    return readDocument(means, clientId, agentClientDocument(issuer, agent))
  }
  const found = await remote.get({
    kind: 'client',
    url: clientId,
    stale: live,
    check: (document) => {
      const verdict = readDocument(means, clientId, document)
      return verdict.tag === 'faulty' ? verdict.fault : undefined
    },
  })
  if (found.tag === 'found') return readDocument(means, clientId, found.document)
  if (found.tag === 'faulty') return faulty(found.fault)
  return {
    tag: 'not_admitted',
    why: 'unreachable',
    description: `the metadata document cannot be fetched: ${found.fault}`,
  }
}

/** Writes the document to the tenant. `fullSince` if it saw too many new clients in the last hour. */
async function observe(
  tx: Transaction,
  random: Random,
  observation: Observation,
  newPerHourMax: number,
  requestId: string | undefined,
): Promise<{ readonly id: string } | { readonly fullSince: Date }> {
  const { tenantId, clientId, now } = observation
  let known = await findObservedClient(tx, tenantId, clientId)
  if (known === undefined) {
    await lockNewClients(tx, tenantId)
    known = await findObservedClient(tx, tenantId, clientId)
  }
  if (known === undefined) {
    const full = await fullSince(tx, tenantId, newPerHourMax, now)
    if (full !== null) return { fullSince: full }
    await insertObservedClient(tx, observation)
    return { id: observation.id }
  }
  const of = { ...observation, id: known.id }
  if (known.documentSha256 !== observation.documentSha256) {
    const change = await updateObservedClient(tx, of)
    if (change?.decisive === true) {
      const party = { type: 'client', id: clientId }
      appendEvents(tx, [
        {
          id: random.uuid(),
          tenantId,
          occurredAt: now,
          ...catalogued(
            'security.client.metadata_changed',
            { actor: party, resource: party, requestId },
            {
              client_id: clientId,
              document_sha256: observation.documentSha256,
              previous_document_sha256: change.previousSha256,
            },
          ),
        },
      ])
    }
  } else if (now.getTime() - known.lastSeenAt.getTime() > SEEN_MS) {
    await touchObservedClient(tx, of)
  }
  return { id: known.id }
}

function readDocument(means: Means, clientId: string, document: unknown): ReadDocument {
  return readClientDocument(clientId, document, (url) => linkFault(means, url))
}

/** What is wrong with a URL inside of a document, as the rest of a sentence. */
function linkFault({ documents, issuer, urls }: Means, url: string): string | undefined {
  if (urls.agentOf(url) !== null || url === issuer) return undefined
  if (httpsUrl(url, { query: true }) === null) return 'is not an https URL'
  // A link to another port is not fetched by the service.
  return documents.faultOf(url) === 'url_host'
    ? 'does not name a host of the public internet'
    : undefined
}

function faulty(description: string): NotAdmitted {
  return { tag: 'not_admitted', why: 'faulty', description }
}

function tooMany(oldest: Date, now: Date): NotAdmitted {
  const leftMs = oldest.getTime() + HOUR_MS - now.getTime()
  return {
    tag: 'not_admitted',
    why: 'rate_limited',
    description: 'this tenant has seen too many new clients within the hour',
    retryAfterSecs: Math.min(Math.max(Math.ceil(leftMs / 1000), 1), 3600),
  }
}
