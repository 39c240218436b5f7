/** Connected accounts of people (docs/guides/vault/connected-accounts.md). */
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { Caller } from '../../../domain/audit.js'
import type { ConnectorMembers } from '../../../domain/entities/connector.js'
import type { EntityProtocol, MemberInvalid } from '../../../domain/entities/messages.js'
import type { IdempotencyClaim } from '../../../domain/idempotency.js'
import type { ListCursor, Page } from '../../../domain/paging.js'
import type { ConnectionRow } from '../../../domain/vault/connections.js'
import type { PageTenant } from '../../../domain/tenants/branding.js'
import type { IdempotencyRefused } from '../protocol.js'

/** The page of the gateway where a person decides; the code follows. */
export const CONNECT_PAGE = '/connect'

export type ConnectorsProtocol = EntityProtocol<ConnectorMembers, never> & {
  /** What is known of providers. */
  listConnectorTemplates: Ask<Record<never, never>, { readonly tag: 'templates' }>
}
export const connectors = address<ConnectorsProtocol>('connectors', {
  idempotent: ['list', 'read', 'listConnectorTemplates'],
})

export type ConnectionsProtocol = {
  requestConnection: Ask<
    RequestConnection,
    | ConnectionRequested
    | MemberInvalid
    | IdempotencyRefused
    | { readonly tag: 'redirect_refused' }
    /** A person's or an agent's own token. */
    | { readonly tag: 'token_direct' }
    | { readonly tag: 'delegation_required' }
    | { readonly tag: 'full'; readonly most: number }
    /** The agent, or the tenant, has asked for many within a day. */
    | { readonly tag: 'too_many'; readonly retryAfterSecs: number }
  >
  listConnections: Ask<Page & { readonly caller: Caller }, ConnectionsListed>
  /** The requester polls it while the person decides. */
  getConnection: Ask<
    OneConnection,
    | { readonly tag: 'found'; readonly connection: Connection }
    | { readonly tag: 'too_fast'; readonly retryAfterSecs: number }
    | UnknownConnection
  >
  /** Ends a connection, also at the provider. */
  deleteConnection: Ask<OneConnection, { readonly tag: 'removed' } | UnknownConnection>
  showConnect: Ask<ShowConnect, ConnectQuestion | ConnectOutcome | SignIn | ConnectRefused>
  approveConnect: Ask<
    DecideConnect &
      Pick<ConnectQuestion, 'agreed'> & { readonly lasts: string; readonly maxBytes: string },
    ToProvider | ConnectOutcome | SignIn | ConnectRefused
  >
  denyConnect: Ask<DecideConnect, ConnectOutcome | SignIn | ConnectRefused>
  /** The provider has sent the person back. */
  finishConnect: Ask<FinishConnect, ConnectOutcome | ConnectFailed | ConnectBusy | ConnectRefused>
  /** The connections of a person, for the account page. */
  connectionsOfPerson: Ask<PersonHere, { tag: 'seen'; connections: readonly SeenConnection[] }>
  /** The person ends one on the account page. */
  disconnectOwn: Ask<
    PersonHere & { readonly id: string; readonly address: string },
    { readonly tag: 'removed' } | UnknownConnection
  >
}

type PersonHere = { readonly tenantId: string; readonly sub: string }
export type Connection = Omit<ConnectionRow, 'code' | 'codeExpiresAt' | 'grantId'>
export type SeenConnection = Connection & {
  /** The agent, or else the application. Null: deleted. */
  readonly name: string | null
  readonly lastUsedAt: Date | null
}
type ConnectionsListed = {
  readonly tag: 'listed'
  readonly connections: readonly Connection[]
  readonly next: ListCursor | null
}

export type RequestConnection = {
  readonly caller: Caller
  readonly connector: string
  readonly scopes: readonly string[] | null
  readonly reason: string | null
  readonly returnTo: string | null
  readonly maxBytes: number | null
  readonly expiresAt: Date | null
  readonly userId: string | null
  readonly agentId: string | null
  readonly idempotency: IdempotencyClaim | null
}
export type ConnectionRequested = {
  readonly tag: 'created'
  readonly id: string
  readonly code: string
  readonly expiresInSecs: number
  readonly replayed: boolean
}
/** The least time between two polls. */
export const POLL_SECS = 5

export type OneConnection = { readonly caller: Caller; readonly id: string }
export type UnknownConnection = { readonly tag: 'unknown_connection' }

export type ShowConnect = { readonly code: string; readonly sessionToken: string | null }
export type DecideConnect = ShowConnect & {
  /** The session that loaded the page. */
  readonly sessionId: string
  readonly address: string
}
export type FinishConnect = {
  readonly sessionToken: string | null
  readonly state: string
  readonly code: string | null
  readonly error: string | null
  readonly iss: string | null
  readonly address: string
}

export type ConnectQuestion = {
  readonly tag: 'asked'
  readonly tenant: PageTenant
  readonly email: string
  readonly sessionId: string
  /** Stands for the connector as the page shows it: another one is shown again. */
  readonly agreed: string
  readonly code: string
  /** Null: no agent gets a grant. */
  readonly agentName: string | null
  readonly requesterName: string
  readonly provider: string
  readonly scopes: readonly string[]
  readonly hosts: readonly string[]
  readonly reason: string | null
  readonly maxBytes: number | null
  readonly expiresAt: Date | null
  /** Shorter times that the person may choose, in seconds. */
  readonly choices: readonly number[]
  readonly seenAt: Date
  /** The origin of the provider. */
  readonly target: string
}
export type ToProvider = { readonly tag: 'to_provider'; readonly location: string }
export type ConnectOutcome = {
  readonly tag: 'outcome'
  readonly tenant: PageTenant
  readonly outcome: 'active' | 'denied' | 'over'
  readonly provider: string
  readonly name: string
  /** Where the application waits. Null: the page shows the result. */
  readonly location: string | null
}
/** The request is still open. */
export type ConnectFailed = {
  readonly tag: 'failed'
  readonly tenant: PageTenant
  readonly provider: string
  readonly code: string
  readonly back: string | null
}
/** The places for calls to providers are taken. The state stays valid. */
export type ConnectBusy = { readonly tag: 'busy' }
export type SignIn = { readonly tag: 'sign_in'; readonly location: string }
/** `unknown`: no such code or state. `other`: the request is for another person. */
export type ConnectRefused = { readonly tag: 'refused'; readonly why: 'unknown' | 'other' }

export const connections = address<ConnectionsProtocol>('connections', {
  idempotent: ['listConnections', 'connectionsOfPerson'],
})
