/** Manages the connectors of a tenant. */
import { defineActor, type MessageContext } from '../../../../runtime/kernel/actor.js'
import { listOpenConnections } from '../../../../storage/vault/connections.js'
import {
  connectorSecretContext,
  connectorTable,
  isConnectorNameTaken,
  keepConnectorSecret,
} from '../../../../storage/vault/connectors.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import {
  type Connector,
  connector,
  type ConnectorDraft,
  type ConnectorMembers,
} from '../../../domain/entities/connector.js'
import { invalid, type MemberInvalid, type OneRow } from '../../../domain/entities/messages.js'
import { eventContext } from '../../../domain/events.js'
import { type Template, TEMPLATES } from '../../../domain/vault/connector-templates.js'
import { entityHandlers } from '../../../platform/entity-handlers.js'
import { type FaultOf, URL_FAULTS } from '../../../platform/outbound-http/targets.js'
import { normalizeHosts } from '../rules.js'
import { END_BATCH, endConnectionsOf } from './end.js'
import { hasMoved, mayReadLabel, strayEndpoint } from './endpoints.js'
import { revokeNow } from './revocations.js'
import { lapseConnected } from './lapsed.js'
import type { EndNeeds } from './needs.js'
import { type ConnectorsProtocol, connectors } from './protocol.js'

const CONNECTORS_MAX = 100
/** Batches of connections that end before the answer. */
const BATCHES_MAX = 10
/** Parameters that the service sets. */
const OWN_PARAMETERS = new Set([
  'response_type',
  'client_id',
  'redirect_uri',
  'state',
  'scope',
  'user_scope',
  'code_challenge',
  'code_challenge_method',
  // They ask for more than the page shows, or stand for all other parameters.
  'include_granted_scopes',
  'authorization_details',
  'claims',
  'request',
  'request_uri',
])

type ConnectorsNeeds = EndNeeds & { readonly issuer: string; readonly urlFaultOf: FaultOf }

export const connectorsActor = defineActor<ConnectorsProtocol, ConnectorsNeeds>({
  address: connectors,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 64 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const shown = <T>(row: T): T => ({ ...row, callbackUrl: `${needs.issuer}/connect/callback` })
    const plain = handlersWith(needs, undefined)
    return {
      async list(message, context) {
        const listed = await plain.list(message, context)
        return { ...listed, rows: listed.rows.map(shown) }
      },
      async read(message, context) {
        const found = await plain.read(message, context)
        return found.tag === 'found' ? { ...found, row: shown(found.row) } : found
      },
      async create(message, context) {
        const draft = fromTemplate(message.draft)
        if ('tag' in draft) return draft
        const { clientSecret } = draft
        if (clientSecret === null && draft.tokenEndpointAuthMethod !== 'none')
          return invalid('/client_secret', 'Required for this token_endpoint_auth_method.')
        const creation = { ...message, draft: { ...draft, clientSecret: null } }
        const newId = needs.random.uuid()
        const { tenantId } = message.caller.principal
        const secret = await sealed(needs, tenantId, newId, clientSecret)
        const created = await handlersWith(needs, secret, newId).create(creation, context)
        return created.tag === 'created' ? { ...created, row: shown(created.row) } : created
      },
      async update(message, context) {
        const { clientSecret, allowedHosts } = message.change
        const hosts = allowedHosts && normalizeHosts(allowedHosts)
        if (hosts !== undefined && 'tag' in hosts) return hosts
        const change = { ...message.change, allowedHosts: hosts, clientSecret: undefined }
        const { id, caller } = message
        const secret = await sealed(needs, caller.principal.tenantId, id, clientSecret)
        const handlers = handlersWith(needs, secret)
        const found = await handlers.update({ ...message, change }, context)
        if (found.tag !== 'found') return found
        await needs.changed(caller.principal.tenantId)
        return { ...found, row: shown(found.row) }
      },
      async listConnectorTemplates() {
        return { tag: 'templates' }
      },
      remove: (message, context) => removeConnector(needs, plain, message, context),
    }
  },
})

/** What a request leaves out comes from its template, or has the default of its member. */
function fromTemplate(given: Partial<ConnectorDraft>): ConnectorDraft | MemberInvalid {
  const template = given.template ?? null
  const known = template === null || template === 'custom' ? undefined : TEMPLATES[template]
  const allowedHosts = normalizeHosts(given.allowedHosts ?? known?.allowed_hosts ?? [])
  if ('tag' in allowedHosts) return allowedHosts
  const authorizationEndpoint = given.authorizationEndpoint ?? known?.authorization_endpoint
  const tokenEndpoint = given.tokenEndpoint ?? known?.token_endpoint
  const required = 'Required where the template has none.'
  if (authorizationEndpoint === undefined) return invalid('/authorization_endpoint', required)
  if (tokenEndpoint === undefined) return invalid('/token_endpoint', required)
  if (allowedHosts.length === 0) return invalid('/allowed_hosts', required)
  return {
    name: given.name!,
    template,
    clientId: given.clientId!,
    clientSecret: given.clientSecret ?? null,
    authorizationEndpoint,
    tokenEndpoint,
    revocationEndpoint: orElse(given.revocationEndpoint, known?.revocation_endpoint),
    issuer: orElse(given.issuer, known?.issuer),
    scopes: given.scopes ?? known?.scopes ?? [],
    allowedHosts,
    authScheme: given.authScheme ?? 'bearer',
    pkce: given.pkce ?? known?.pkce ?? true,
    tokenEndpointAuthMethod:
      given.tokenEndpointAuthMethod ?? known?.token_endpoint_auth_method ?? 'client_secret_post',
    authorizationParameters: given.authorizationParameters ?? known?.authorization_parameters ?? {},
    accountLabel:
      given.accountLabel === undefined ? labelAt(known, allowedHosts) : given.accountLabel,
  }
}

/** The label of a template, where the hosts of the request have its host. */
function labelAt(
  template: Pick<Template, 'account_label'> | undefined,
  allowedHosts: readonly string[],
): Connector['accountLabel'] {
  const accountLabel = template?.account_label ?? null
  return mayReadLabel({ accountLabel, allowedHosts: [...allowedHosts] }) ? accountLabel : null
}

/** Null is a value that a request can state. */
const orElse = <T>(given: T | null | undefined, known: T | null | undefined): T | null =>
  given === undefined ? (known ?? null) : given

/** Before the transaction: a first value of a tenant needs a separate connection. */
async function sealed<T extends null | undefined>(
  { sealer }: ConnectorsNeeds,
  tenantId: string,
  id: string,
  secret: string | T,
): Promise<Uint8Array | T> {
  if (typeof secret !== 'string') return secret
  return sealer.seal(tenantId, connectorSecretContext(id), new TextEncoder().encode(secret))
}

/**
 * @param secret a new sealed client secret, which is stored in the transaction of the write; null deletes the stored one. Undefined
 * keeps it, unless an endpoint moves: it was given for the origins before.
 */
function handlersWith(
  needs: ConnectorsNeeds,
  secret: Uint8Array | null | undefined,
  newId?: string,
) {
  return entityHandlers<ConnectorMembers, never>(needs, {
    entity: connector,
    table: connectorTable,
    ...(newId !== undefined && { newId }),
    most: CONNECTORS_MAX,
    faultOf: (draft) => draftFault(draft, needs.urlFaultOf),
    written: async (tx, row, before) => {
      const moves = before !== null && hasMoved(before, row)
      const { tenantId, id } = row
      if (secret !== undefined || moves) await keepConnectorSecret(tx, tenantId, id, secret ?? null)
      if (moves) await lapseAll(tx, needs, row)
    },
    isConflict: isConnectorNameTaken,
    auditOf: ({ name, template }) => ({ name, template }),
    powersOf: ({ allowedHosts, scopes }) => ({ allowed_hosts: allowedHosts, scopes }),
  })
}

function draftFault(draft: ConnectorDraft, urlFaultOf: FaultOf): MemberInvalid | undefined {
  const urls = {
    '/authorization_endpoint': draft.authorizationEndpoint,
    '/token_endpoint': draft.tokenEndpoint,
    '/revocation_endpoint': draft.revocationEndpoint,
    '/account_label/url': draft.accountLabel?.url ?? null,
  }
  for (const [pointer, url] of Object.entries(urls)) {
    const fault = url === null ? undefined : urlFaultOf(url)
    if (fault !== undefined) return invalid(pointer, URL_FAULTS[fault])
  }
  const stray = strayEndpoint(draft)
  if (stray !== undefined) return invalid(stray, 'Must be as in the template of this provider.')
  if (!mayReadLabel(draft)) return invalid('/account_label/url', 'Must be on one of allowed_hosts.')
  const own = Object.keys(draft.authorizationParameters).find((name) => OWN_PARAMETERS.has(name))
  return own === undefined
    ? undefined
    : invalid('/authorization_parameters', `The service sets the parameter ${own}.`)
}

async function lapseAll(tx: Transaction, needs: ConnectorsNeeds, { tenantId, id }: Connector) {
  for (const { status, credentialId } of await listOpenConnections(tx, tenantId, id, null)) {
    if (status === 'active') await lapseConnected(tx, needs, tenantId, credentialId!)
  }
}

/** No account is connected any more after the first transaction. Connections end in more, and what is left in the upkeep. */
async function removeConnector(
  needs: ConnectorsNeeds,
  plain: ReturnType<typeof handlersWith>,
  message: OneRow,
  context: MessageContext,
) {
  const { caller, id } = message
  const { tenantId } = caller.principal
  const outcome = await plain.remove(message, context)
  if (outcome.tag !== 'removed') return outcome
  try {
    const by = eventContext(needs, caller, context)
    for (let batch = 1; batch <= BATCHES_MAX; batch += 1)
      if ((await endConnectionsOf(needs, tenantId, id, by)) < END_BATCH) break
  } catch (error) {
    context.log.warn({ err: error }, 'vault: connections of a deleted connector end later')
  }
  await needs.changed(tenantId)
  await revokeNow(needs, tenantId, context.log)
  return outcome
}
