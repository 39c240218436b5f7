/** Client authentication at the token endpoint. See docs/reference/oauth.md. */
import { createHash } from 'node:crypto'
import { together } from '../../../../runtime/kernel/batched-asks.js'
import { type Clock, CLOCK_STEP_SECS_MAX } from '../../../../runtime/kernel/clock.js'
import {
  type ClientRow,
  findClients,
  isSecretOf,
  noteMisplacedSecret,
  originListed,
  originListedByUrl,
  secretsInForce,
} from '../../../../storage/oauth/applications.js'
import type { Coordination } from '../../../../storage/platform/coordination/port.js'
import { type AgentClientRow, findAgentClient } from '../../../../storage/oauth/token-sessions.js'
import type { Database, Transaction } from '../../../../storage/platform/sql.js'
import { agentKeySet } from '../../../domain/agents/documents.js'
import { isUuid } from '../../../domain/ids.js'
import type { Documents } from '../../../platform/outbound-http/documents.js'
import { readAssertion } from './client-assertion.js'
import { clientIdFault } from './metadata/client-id.js'
import type { TtlCache } from '../../../platform/batching/ttl-cache.js'
import { atMostEvery } from '../../../../runtime/kernel/fairness/at-most-every.js'
import { isSignedByApplication, isSignedByOneOf } from './client-keys.js'
import type { ClientAuthentication, SecretPlace } from './client-authentication.js'
import type { Admitted } from '../../trusted-issuers/protocol.js'
import type { ExternalJws } from '../../../platform/jose/external-jws.js'

/** Compared with the secret of an unknown client, so that both cases take the same time. */
const NO_SECRET = createHash('sha256').update('no such client').digest()

export type Client =
  | {
      readonly kind: 'application'
      readonly confidential: boolean
      readonly row: ClientRow
      /** The metadata document that identifies the client. Absent for a registered one. */
      readonly documentSha256?: string | undefined
      /** The rule by which a token of a trusted issuer stands for the client. */
      readonly admitted?: Admitted | undefined
    }
  /** Confidential if it signed an assertion. Otherwise it is identified by `client_id` only. */
  | { readonly kind: 'agent'; readonly confidential: boolean; readonly row: AgentClientRow }

export type AdmittedClient = Extract<Client, { kind: 'application' }> & {
  readonly admitted: Admitted
}

/** True if a token of a trusted issuer stands for the client. */
export const isAdmitted = (client: Client): client is AdmittedClient =>
  client.kind === 'application' && client.admitted !== undefined

type Known =
  | { readonly kind: 'application'; readonly row: ClientRow }
  | { readonly kind: 'agent'; readonly row: AgentClientRow }
  | { readonly kind: 'unknown' }

export type WhyRefused = {
  readonly reason: string
  /** The tenant of the presented client. Null if it does not exist. */
  readonly tenantId: string | null
}

export interface Clients {
  /**
   * The client if it is active and its credentials are valid, otherwise null. Synchronous for a
   * cached client with a secret.
   */
  authenticate(presented: ClientAuthentication): Client | null | Promise<Client | null>
  /** The active client with this id, not authenticated. Null for an unknown or inactive one. */
  inForce(clientId: string): Promise<Client | null>
  /** Why authentication of these credentials failed, from memory. For the log: the answer must not tell it. */
  whyRefused(presented: ClientAuthentication): WhyRefused
  /** True if the application lists the web origin. Without such an application: if any does. */
  lists(origin: string, clientId: string | null): Promise<boolean>
}

const UNKNOWN = { kind: 'unknown' } as const

/** The tenant whose suspension or activation changes the client's status. */
function tenantOf(known: Known): readonly string[] {
  if (known.kind === 'unknown') return []
  return [known.kind === 'agent' ? known.row.homeTenantId : known.row.tenantId]
}

/** Treats an inactive client as unknown. */
function ifActive(known: Known): Known {
  if (known.kind === 'unknown') return known
  // The id of a client that a metadata document identifies is not its client_id.
  if (known.kind === 'application' && known.row.metadataUrl !== null) return UNKNOWN
  const active =
    known.row.status === 'active' && (known.kind === 'agent' || known.row.tenantStatus === 'active')
  return active ? known : UNKNOWN
}

type ClientsNeeds = {
  readonly database: Database
  readonly coordination: Pick<Coordination, 'once'>
  readonly clock: Clock
  readonly issuer: string
  readonly memory: TtlCache<Known>
  readonly origins: TtlCache<boolean>
  /** Fetches the `jwks_uri` of clients. */
  readonly documents: Pick<Documents, 'fetch'>
}
export type KnownClient = Known

/** Clients whose misplaced secret is noted are not noted again for this long. */
const NOTED_MS = 86_400_000

export function createClients({
  database,
  coordination,
  clock,
  issuer,
  memory,
  origins,
  documents,
}: ClientsNeeds): Clients {
  /** Concurrent look-ups share one query: with many tenants, most requests are of a client that is not cached. */
  const findApplication = together((ids: readonly string[]) => findClients(database, ids))

  /** The tenant is unknown until the client is found, so the look-up crosses tenants. */
  async function read(clientId: string): Promise<Known> {
    const application = await findApplication(clientId)
    if (application !== undefined) return { kind: 'application', row: application }
    const agent = await database.system((tx) => findAgentClient(tx, clientId), { pool: 'identity' })
    return agent === undefined ? { kind: 'unknown' } : { kind: 'agent', row: agent }
  }

  function lookUp(clientId: string): Known | Promise<Known> {
    if (!isUuid(clientId)) return UNKNOWN
    const known = memory.peek(clientId)
    if (known !== undefined) return ifActive(known)
    return memory.get(clientId, [clientId], () => read(clientId), tenantOf).then(ifActive)
  }

  const mayNote = atMostEvery(NOTED_MS, clock)

  /** For `svc doctor`. The answer does not wait for it. */
  function noteMisplaced({ id, tenantId }: ClientRow): void {
    if (!mayNote(id)) return
    const note = (tx: Transaction) => noteMisplacedSecret(tx, tenantId, id, clock.now())
    // A lost note is made again a day later.
    database.tenant(tenantId, note).catch(() => undefined)
  }

  function bySecret({
    clientId,
    secret,
    place,
  }: Extract<ClientAuthentication, { method: 'secret' }>): Client | null | Promise<Client | null> {
    const check = (known: Known): Client | null => {
      const usesSecret = known.kind === 'application' && mayPresent(known.row, place)
      const hashes = usesSecret ? secretsInForce(known.row, clock.now()) : [NO_SECRET]
      const right = isSecretOf(secret, hashes)
      if (usesSecret && right && known.row.tokenEndpointAuthMethod !== place)
        noteMisplaced(known.row)
      return usesSecret && right
        ? { kind: 'application', confidential: true, row: known.row }
        : null
    }
    const known = lookUp(clientId)
    return known instanceof Promise ? known.then(check) : check(known)
  }

  async function byAssertion(clientId: string | null, assertion: string): Promise<Client | null> {
    const claimed = readAssertion(assertion, issuer, clock.nowSecs())
    if ('fault' in claimed || (clientId !== null && clientId !== claimed.clientId)) return null
    const known = await lookUp(claimed.clientId)
    if (known.kind === 'unknown') return null
    if (!(await isSigned(claimed.jws, known))) return null
    // Mark the `jti` as used only after the signature is valid, so that no other party can use it up.
    const id = createHash('sha256').update(`${claimed.clientId} ${claimed.id}`).digest('base64url')
    const ttlSecs = claimed.expiresAtSecs - clock.nowSecs() + 1 + CLOCK_STEP_SECS_MAX
    if (!(await coordination.once(`assertion:${id}`, ttlSecs))) return null
    return { confidential: true, ...known }
  }

  async function isSigned(jws: ExternalJws, known: Exclude<Known, { kind: 'unknown' }>) {
    if (known.kind === 'agent') return isSignedByOneOf(jws, agentKeySet(known.row).keys)
    if (known.row.tokenEndpointAuthMethod !== 'private_key_jwt') return false
    return isSignedByApplication(documents, known.row, jws)
  }

  async function byName(clientId: string): Promise<Client | null> {
    const known = await lookUp(clientId)
    if (known.kind === 'agent') return { confidential: false, ...known }
    const open = known.kind === 'application' && known.row.tokenEndpointAuthMethod === 'none'
    return open ? { confidential: false, ...known } : null
  }

  return {
    async lists(origin, clientId) {
      if (clientId !== null && !isUuid(clientId) && clientIdFault(clientId) === undefined)
        return origins.get(`${clientId} ${origin}`, [], () =>
          database.system((tx) => originListedByUrl(tx, origin, clientId), { pool: 'identity' }),
        )
      const id = clientId !== null && isUuid(clientId) ? clientId : null
      return origins.get(`${id} ${origin}`, id === null ? [] : [id], () =>
        database.system((tx) => originListed(tx, origin, id), { pool: 'identity' }),
      )
    },
    async inForce(clientId) {
      const known = await lookUp(clientId)
      return known.kind === 'unknown' ? null : { confidential: false, ...known }
    },
    whyRefused(presented) {
      const { named, isFaulty } = namedBy(presented, issuer, clock.nowSecs())
      const known = named !== null && isUuid(named) ? memory.peek(named) : undefined
      if (known === undefined || known.kind === 'unknown')
        return { reason: isFaulty ? 'client_assertion_wrong' : 'client_unknown', tenantId: null }
      const [tenantId] = tenantOf(known)
      const reason =
        ifActive(known).kind === 'unknown' ? 'client_inactive' : refusalOf(known, presented)
      return { reason, tenantId: tenantId! }
    },
    authenticate(presented) {
      switch (presented.method) {
        case 'secret':
          return bySecret(presented)
        case 'assertion':
          return byAssertion(presented.clientId, presented.assertion)
        case 'none':
          return byName(presented.clientId)
      }
    },
  }
}

/** True if the client authenticates by a secret in this place. */
function mayPresent(
  { tokenEndpointAuthMethod: method, heldToMethod }: ClientRow,
  place: SecretPlace,
): boolean {
  return heldToMethod ? method === place : method.startsWith('client_secret_')
}

/** The client that a request names. An assertion with a fault is refused before its client is looked up. */
function namedBy(
  presented: ClientAuthentication,
  issuer: string,
  nowSecs: number,
): { readonly named: string | null; readonly isFaulty: boolean } {
  if (presented.method !== 'assertion') return { named: presented.clientId, isFaulty: false }
  const claimed = readAssertion(presented.assertion, issuer, nowSecs)
  if ('fault' in claimed) return { named: presented.clientId, isFaulty: true }
  return { named: presented.clientId ?? claimed.clientId, isFaulty: false }
}

function refusalOf(
  known: Exclude<Known, { kind: 'unknown' }>,
  presented: ClientAuthentication,
): string {
  if (presented.method === 'assertion') return 'client_assertion_wrong'
  const isOfMethod =
    presented.method === 'secret' &&
    known.kind === 'application' &&
    mayPresent(known.row, presented.place)
  return isOfMethod ? 'client_secret_wrong' : 'client_method_wrong'
}

/** The client_id in tokens and events: the URL of the metadata document, otherwise the id. */
export function publicClientId(client: Client): string {
  return client.kind === 'application' ? (client.row.metadataUrl ?? client.row.id) : client.row.id
}
