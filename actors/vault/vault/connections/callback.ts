/**
 * The return from a provider: takes the state once, redeems the code once, and stores credential, token and grant in one
 * transaction. The `iss` of the response must be the provider's (RFC 9207), which prevents mix-up attacks.
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { appendAudit } from '../../../../storage/operations/audit.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import {
  activateConnection,
  type ConnectionPage,
  findConnectionOfCode,
  lockConnection,
  takeConnectionState,
} from '../../../../storage/vault/connections.js'
import { keepLateRevocation } from '../../../../storage/vault/revocations.js'
import { revokeNow } from './revocations.js'
import { findConnector, holdConnector } from '../../../../storage/vault/connectors.js'
import { keepManagedToken, managedTokenContext } from '../../../../storage/vault/managed-tokens.js'
import {
  credentialSecretContext,
  insertVaultCredential,
  lockVaultCredential,
} from '../../../../storage/vault/vault-credentials.js'
import { insertVaultGrant, isGrantActive } from '../../../../storage/vault/vault-grants.js'
import type { Connector } from '../../../domain/entities/connector.js'
import { eventBy, eventContext, type EventContext } from '../../../domain/events.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import type { OAuthDocument } from '../../../domain/vault/secret-documents/oauth.js'
import type { BrowserSession } from '../../../identity/sign-in/sessions/protocol.js'
import { inPlace } from '../../../../runtime/kernel/fairness/fair-share.js'
import { inTenant } from '../../../platform/in-tenant.js'
import { auditEntry, credentialResource } from '../events.js'
import { replaceSecret } from '../lapse.js'
import { snapshotOf } from '../records.js'
import { bytesOf } from '../token-source.js'
import { connectionEvent, personAsCaller } from './events.js'
import type { ConnectionsHandler, ConnectionsNeeds } from './needs.js'
import { agreedOf, withSecret } from './endpoints.js'
import { departureOf, deny, outcomeOf, tenantOf } from './page.js'
import {
  CONNECT_PAGE,
  type ConnectBusy,
  type ConnectFailed,
  type ConnectOutcome,
  type ConnectRefused,
  type ConnectionsProtocol,
  type FinishConnect,
} from './protocol.js'
import { type ProviderTokens, readAccountLabel, redeemCode } from './provider.js'
import type { ConnectionRow } from '../../../domain/vault/connections.js'
import { returnAddress } from './request.js'

/** An access token without an end and without a refresh token is used until the provider rejects it. */
const UNENDING_MS = 10 * 365 * 86_400_000
const BUSY: ConnectBusy = { tag: 'busy' }
const UNKNOWN: ConnectRefused = { tag: 'refused', why: 'unknown' }

type Finished = ConnectionsProtocol['finishConnect']['reply']

export const finishConnect: ConnectionsHandler<'finishConnect'> = async (
  needs,
  message,
  context,
) => {
  const read = await needs.browserSessions.read({ token: message.sessionToken }, context)
  if (read.tag !== 'open') return UNKNOWN
  const { session } = read
  const { tenantId } = session
  // The place comes before the state, which is used once: the browser may ask again.
  return inPlace<Finished>(needs.calls, tenantId, await needs.groups.of(tenantId), BUSY, () =>
    finish(needs, message, session, context),
  )
}

async function finish(
  needs: ConnectionsNeeds,
  message: FinishConnect,
  session: BrowserSession,
  context: MessageContext,
): Promise<Finished> {
  const { database, clock, sealer, fetch, issuer } = needs
  // The state determines the tenant, and the transaction crosses tenants.
  const taken = await database.system(async (tx) => {
    const state = await takeConnectionState(tx, sha256(message.state), session.id, clock.now())
    const row = state?.code == null ? undefined : await findConnectionOfCode(tx, state.code)
    return state === undefined || row === undefined
      ? undefined
      : { row, sealed: state.verifierSealed }
  }, context)
  if (taken === undefined || taken.row.subject !== session.sub) return UNKNOWN
  const { row, sealed } = taken
  const stored = await inTenant(database, row.tenantId, context, (tx) =>
    findConnector(tx, row.tenantId, row.connectorId),
  )
  if (stored === undefined) return outcomeOf(row, 'over', null)
  const refuse = (fault: string): ConnectFailed => {
    context.log.info({ connector: row.connector, connection_id: row.id, fault }, 'connect failed')
    return failed(row)
  }
  const left = await departureOf(sealer, row, sealed)
  if (left.agreed !== agreedOf(stored)) return refuse('connector_changed')
  const connector = await withSecret(sealer, stored)
  if (!(await isFromProvider(needs, connector, message.iss))) return refuse('iss')
  if (message.error === 'access_denied')
    return onPage(row, await deny(needs, row, session, message.address, context))
  if (message.error !== null || message.code === null)
    return refuse(`error_${(message.error ?? 'none').slice(0, 64)}`)
  const redirectUri = `${issuer}${CONNECT_PAGE}/callback`
  const sent = { code: message.code, redirectUri, verifier: left.verifier }
  const tokens = await redeemCode(fetch, connector, sent, clock)
  if ('fault' in tokens) return refuse(tokens.fault)
  const label = await readAccountLabel(fetch, connector, tokens.accessToken)
  const made = { row, connector, session, tokens, label, address: message.address }
  if (!(await keep(needs, made, context))) {
    await revokeNow(needs, row.tenantId, context.log)
    return outcomeOf(row, 'over', null)
  }
  await needs.changed(row.tenantId)
  return onPage(row, outcomeOf(row, 'active', returnAddress(row, 'active')))
}

/** A result without a return address is on the page of the request, so that loading it again shows it again. */
const onPage = (row: ConnectionPage, outcome: ConnectOutcome): ConnectOutcome => ({
  ...outcome,
  location: outcome.location ?? `${CONNECT_PAGE}/${row.code!}`,
})

const failed = (row: ConnectionPage): ConnectFailed => ({
  tag: 'failed',
  tenant: tenantOf(row),
  provider: row.connector,
  code: row.code!,
  back: returnAddress(row, 'failed'),
})

/** RFC 9207 section 2.4. An `iss` is required where the metadata of the provider says that it is sent. */
async function isFromProvider(
  { documents }: ConnectionsNeeds,
  { issuer, authorizationEndpoint }: Connector,
  iss: string | null,
): Promise<boolean> {
  if (issuer === null) {
    if (iss === null) return true
    return URL.canParse(iss) && new URL(iss).origin === new URL(authorizationEndpoint).origin
  }
  if (iss !== null) return iss === issuer
  return !(await saysIssuer(documents, issuer))
}

async function saysIssuer(
  documents: ConnectionsNeeds['documents'],
  issuer: string,
): Promise<boolean> {
  const { origin, pathname } = new URL(issuer)
  const path = pathname === '/' ? '' : pathname
  for (const url of [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
  ]) {
    const answer = await documents.fetch(url)
    if (answer.tag !== 'fetched') continue
    const metadata = answer.document as Readonly<Record<string, unknown>> | null
    if (metadata?.['issuer'] === issuer)
      return metadata['authorization_response_iss_parameter_supported'] === true
  }
  return false
}

type Made = {
  readonly row: ConnectionPage
  readonly connector: Connector
  readonly session: BrowserSession
  readonly tokens: ProviderTokens
  readonly label: string | null
  readonly address: string
}

/** False: the connection has ended in the meantime, or its connector has changed. The tokens wait to be revoked. */
async function keep(
  needs: ConnectionsNeeds,
  { row, connector, session, tokens, label, address }: Made,
  context: MessageContext,
): Promise<boolean> {
  const { sealer, random } = needs
  const { tenantId } = row
  const credentialId = row.credentialId ?? random.uuid()
  const document: OAuthDocument = {
    token_url: connector.tokenEndpoint,
    client_id: connector.clientId,
    ...(connector.clientSecret !== null && { client_secret: connector.clientSecret }),
    auth_method: connector.tokenEndpointAuthMethod,
    ...(tokens.refreshToken !== null && { refresh_token: tokens.refreshToken }),
    ...(connector.revocationEndpoint !== null && { revocation_url: connector.revocationEndpoint }),
    connection_id: row.id,
  }
  const bytes = bytesOf(document)
  const secret = await sealer.seal(tenantId, credentialSecretContext(credentialId), bytes)
  bytes.fill(0)
  const scope = tokens.scopes?.join(' ') ?? null
  const text = JSON.stringify({ access_token: tokens.accessToken, scope, previous: null })
  const token = await sealer.seal(
    tenantId,
    managedTokenContext(credentialId),
    Buffer.from(text, 'utf8'),
  )
  const by = eventContext(needs, personAsCaller(session, address), context)
  const late = { tenantId, connectionId: row.id, id: random.uuid(), credentialId, secret, token }
  return inTenant(needs.database, tenantId, context, async (tx) => {
    const locked = await stillOpen(tx, row, connector)
    const credential =
      locked &&
      (await keepCredential(tx, needs, { row, connector, label, by }, { credentialId, secret }))
    if (locked === undefined || credential === undefined) {
      await keepLateRevocation(tx, { ...late, now: by.now })
      return false
    }
    await keepManagedToken(tx, tenantId, credentialId, random.uuid(), {
      token,
      obtainedAt: tokens.obtainedAt,
      expiresAt:
        tokens.expiresAt ??
        (tokens.refreshToken === null ? new Date(by.now.getTime() + UNENDING_MS) : null),
      clientAuth: null,
    })
    const grantId = await keepGrant(tx, needs, locked, credential, by)
    const scopes = tokens.scopes ?? row.scopes
    const now = by.now
    const made = { credentialId, grantId, accountLabel: label, scopes, now }
    if (!(await activateConnection(tx, row, made))) return false
    const active = { ...locked, status: 'active', credentialId, scopes } as const
    appendEvents(tx, [connectionEvent('vault.connection.activated', active, by)])
    return true
  })
}

/** Locks the connection, after its credential, if the account can be connected as the person agreed. */
async function stillOpen(
  tx: Transaction,
  { tenantId, id, connectorId, credentialId }: ConnectionRow,
  connector: Connector,
): Promise<ConnectionRow | undefined> {
  const held = await holdConnector(tx, tenantId, connectorId)
  if (held === undefined || agreedOf(held) !== agreedOf(connector)) return undefined
  if (credentialId !== null) await lockVaultCredential(tx, tenantId, credentialId)
  const locked = await lockConnection(tx, tenantId, id)
  const isOpen = locked?.status === 'pending' || locked?.status === 'needs_reauthorization'
  return isOpen ? locked : undefined
}

type Credential = NonNullable<Awaited<ReturnType<typeof insertVaultCredential>>>

/** The credential of the connection: a new one, or the earlier one with the new refresh token. */
async function keepCredential(
  tx: Transaction,
  { settings }: ConnectionsNeeds,
  made: Pick<Made, 'row' | 'connector' | 'label'> & { readonly by: EventContext },
  { credentialId: id, secret }: { readonly credentialId: string; readonly secret: Uint8Array },
): Promise<Credential | undefined> {
  const { row, connector, label, by } = made
  const { tenantId } = row
  if (row.credentialId !== null) {
    const known = await lockVaultCredential(tx, tenantId, id)
    if (known === undefined || known.status === 'revoked') return undefined
    return replaceSecret(tx, tenantId, id, { secret, caPublicKey: null }, by.now)
  }
  const stored = await insertVaultCredential(
    tx,
    {
      id,
      tenantId,
      ownerType: 'human',
      ownerId: row.subject,
      provider: connector.name,
      credentialType: 'custom',
      label: (label ?? connector.name).slice(0, 120),
      authScheme: 'oauth2_refresh',
      allowedHosts: [...connector.allowedHosts],
      nonExportable: true,
      metadata: { connection_id: row.id },
      tokenOf: null,
      createdAt: by.now,
      secret,
      caPublicKey: null,
    },
    settings.max_credentials_per_tenant,
  )
  if (stored === undefined) return undefined
  const { provider, credentialType, authScheme, allowedHosts, nonExportable } = stored
  appendEvents(tx, [
    eventBy('vault.credential.created', credentialResource(id), by, {
      provider,
      credential_type: credentialType,
      label: stored.label,
      auth_scheme: authScheme,
      allowed_hosts: allowedHosts,
      non_exportable: nonExportable,
    }),
  ])
  return stored
}

/** The grant of the agent of the request. Null: no agent, or its grant goes on. */
async function keepGrant(
  tx: Transaction,
  { random }: ConnectionsNeeds,
  { tenantId, agentId, grantId, maxBytes, grantExpiresAt }: ConnectionRow,
  credential: Credential,
  by: EventContext,
): Promise<string | null> {
  if (agentId === null) return null
  const { now } = by
  if (grantId !== null && (await isGrantActive(tx, tenantId, grantId, now))) return null
  const grant = await insertVaultGrant(tx, {
    id: random.uuid(),
    tenantId,
    credentialId: credential.id,
    granteeType: 'agent',
    granteeId: agentId,
    capabilities: ['list', 'use'],
    snapshot: snapshotOf(credential),
    methods: null,
    pathPrefixes: null,
    allowRange: false,
    maxRequests: null,
    maxBytes,
    approval: 'none',
    budget: null,
    expiresAt: grantExpiresAt,
    createdAt: now,
  })
  appendAudit(tx, [
    auditEntry('vault.grant.created', { type: 'vault_grant', id: grant.id }, by, {
      credential_id: credential.id,
      grantee_type: 'agent',
      grantee_id: agentId,
      capabilities: grant.capabilities,
    }),
  ])
  return grant.id
}
