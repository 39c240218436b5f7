/** Offers and issues verifiable credentials. See docs/guides/oauth/verifiable-credentials.md. */
import { createHash } from 'node:crypto'
import type { Registry } from 'prom-client'
import { type ActorRef, defineActor } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  findIssuedCredential,
  type IssuedCredentialRow,
  listIssuedCredentials,
  recordNotification,
  revokeIssuedCredential,
} from '../../../storage/oauth/credential-issuance.js'
import { statusListUri } from '../../../storage/oauth/status-lists.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import type { Coordination } from '../../../storage/platform/coordination/port.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { Database } from '../../../storage/platform/sql.js'
import { audited } from '../../domain/audit.js'
import { ANONYMOUS_CLIENT, isCredentialConfiguration } from '../../domain/credentials/catalogue.js'
import { isUuid } from '../../domain/ids.js'
import type { ImportedKey } from '../../platform/jose/jwk.js'
import { parseStrictJson } from '../../platform/jose/strict-json.js'
import { counter } from '../../platform/metrics.js'
import { page } from '../../platform/paging.js'
import { tenants, type TenantsProtocol } from '../../identity/tenants/protocol.js'
import { signingKeys, type SigningKeysProtocol } from '../signing-keys/protocol.js'
import { tokens, type TokensProtocol } from '../tokens/protocol.js'
import { typeMetadata } from '../../domain/credentials/configurations.js'
import { credentialIssuers, type Issuer } from './issuers.js'
import { issueCredentials } from './issue.js'
import { readProofs, verifyProof } from './key-proofs.js'
import { credentialNonces } from './nonces.js'
import { credentialOffers } from './offers.js'
import {
  type CredentialIssuanceProtocol,
  type CredentialRefused,
  credentialIssuance,
  credentialRefused,
  type IssuedRecord,
  type NotificationRefused,
} from './protocol.js'
import type { CredentialsSettings } from './settings.js'
import {
  offersNothing,
  readRequestedCredential,
  walletToken,
  type WalletToken,
} from './wallet-token.js'

const JSON_DEPTH_MAX = 16
const TYPE_METADATA_MAX_AGE_SECS = 3_600
const NOTIFICATION_EVENTS = ['credential_accepted', 'credential_failure', 'credential_deleted']
const NOTIFICATION_TEXT_MAX = 1_024

export type CredentialIssuanceNeeds = {
  readonly database: Database
  readonly coordination: Pick<Coordination, 'once'>
  readonly sealer: Sealer
  readonly keys: ActorRef<SigningKeysProtocol>
  readonly tenants: ActorRef<TenantsProtocol>
  readonly tokens: ActorRef<TokensProtocol>
  readonly clock: Clock
  readonly random: Random
  readonly registry: Registry
  /** `oidc.issuer_url`: the authorization server, and the public base URL. */
  readonly issuer: string
  readonly rootTenantSlug: string | undefined
  readonly settings: CredentialsSettings
}

export const credentialIssuanceActor = defineActor<
  CredentialIssuanceProtocol,
  CredentialIssuanceNeeds
>({
  address: credentialIssuance,
  asks: { keys: signingKeys, tenants, tokens },
  mailbox: { capacity: 2048, inflightMax: 128 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { database, clock, random, settings, rootTenantSlug, issuer: baseUrl } = needs
    const issuers = credentialIssuers({ ...needs, baseUrl, enabled: settings.enabled })
    const nonces = credentialNonces({ ...needs, ttlSecs: settings.nonce_ttl_secs })
    const tokenNeeds = { ...needs, baseUrl, authorizationServer: needs.issuer, rootTenantSlug }
    const issued = counter(
      needs.registry,
      'svc_credentials_issued_total',
      'Verifiable credentials issued.',
      ['configuration'],
    )
    const issuing = { ...needs, baseUrl, lifetimeSecs: settings.lifetime_secs }

    /** The keys of valid proofs whose nonces are now used up, in the order of the proofs. */
    async function proven(
      proofs: unknown,
      issuer: Issuer,
      { principal }: WalletToken,
    ): Promise<readonly ImportedKey[] | CredentialRefused> {
      const read = readProofs(proofs)
      if ('fault' in read) return credentialRefused('invalid_proof', read.fault)
      const { clientId } = principal
      const demands = {
        audience: issuer.identifier,
        clientId: clientId === ANONYMOUS_CLIENT ? null : clientId,
        nowSecs: clock.nowSecs(),
      }
      const keys: ImportedKey[] = []
      const found = new Set<string>()
      for (const proof of read) {
        const verified = verifyProof(proof, demands)
        if ('fault' in verified) return credentialRefused('invalid_proof', verified.fault)
        keys.push(verified.key)
        found.add(verified.nonce)
      }
      const invalid = credentialRefused(
        'invalid_nonce',
        'the nonce of a proof is unknown, expired or was used: get another one',
      )
      const expiries = new Map<string, number>()
      for (const nonce of found) {
        const expiresAtSecs = await nonces.read(issuer.identifier, nonce)
        if (expiresAtSecs === null) return invalid
        expiries.set(nonce, expiresAtSecs)
      }
      for (const [nonce, expiresAtSecs] of expiries)
        if (!(await nonces.use(nonce, expiresAtSecs))) return invalid
      return keys
    }

    const issuedRecord = (row: IssuedCredentialRow) => recordOf(baseUrl, row)

    return {
      ...credentialOffers({
        ...needs,
        baseUrl,
        offerTtlSecs: settings.offer_ttl_secs,
        issuerOfTenant: issuers.byTenant,
      }),

      async listIssuedCredentials({ caller, limit, after }, { signal }) {
        const { tenantId } = caller.principal
        const rows = await database.tenant(
          tenantId,
          (tx) => listIssuedCredentials(tx, tenantId, limit + 1, after),
          { signal },
        )
        const { items, next } = page(rows, limit)
        return { tag: 'listed', credentials: items.map(issuedRecord), next }
      },

      async revokeIssuedCredential({ caller, credentialId }, { signal, requestId }) {
        const { tenantId } = caller.principal
        if (!isUuid(credentialId)) return { tag: 'unknown' }
        const row = await database.tenant(
          tenantId,
          async (tx) => {
            const now = clock.now()
            const revoked = await revokeIssuedCredential(tx, tenantId, credentialId, now)
            // A second request changes nothing and gets the same answer.
            if (revoked === undefined) return findIssuedCredential(tx, tenantId, credentialId)
            appendAudit(tx, [
              audited(caller, {
                id: random.uuid(),
                tenantId,
                type: 'admin.credential.revoked',
                occurredAt: now,
                resource: { type: 'credential', id: revoked.id },
                requestId,
                data: {
                  credential_configuration_id: revoked.configurationId,
                  user_id: revoked.userId,
                },
              }),
            ])
            return revoked
          },
          { signal },
        )
        return row === undefined ? { tag: 'unknown' } : { tag: 'found', record: issuedRecord(row) }
      },

      async createCredentialNonce({ tenantSlug }, context) {
        const issuer = await issuers.bySlug(tenantSlug, context)
        if (issuer === null && tenantSlug !== null) return { tag: 'not_enabled' }
        return { tag: 'made', nonce: await nonces.make(issuer?.identifier ?? baseUrl) }
      },

      async requestCredential(request, context) {
        const issuer = await issuers.bySlug(request.tenantSlug, context)
        if (issuer === null)
          return request.tenantSlug === null
            ? offersNothing(tokenNeeds, request, context)
            : { tag: 'not_enabled' }
        const token = await walletToken(tokenNeeds, issuer, request, context)
        if (token.tag !== 'wallet_token') return token
        const body = readObject(request.body)
        if (body === undefined)
          return credentialRefused('invalid_credential_request', 'the body is not a JSON object')
        const requested = readRequestedCredential(body, token)
        if ('tag' in requested) return requested
        const keys = await proven(body['proofs'], issuer, token)
        if ('tag' in keys) return keys
        const { configurationId } = requested
        const { address } = request
        const outcome = await issueCredentials(
          issuing,
          { issuer, configurationId, token, proofKeys: keys, address },
          context,
        )
        if (outcome.tag === 'issued')
          issued.inc({ configuration: configurationId }, outcome.credentials.length)
        return outcome
      },

      async notifyRootCredentialIssuer(request, context) {
        const issuer = await issuers.bySlug(request.tenantSlug, context)
        if (issuer === null) return { tag: 'not_enabled' }
        const token = await walletToken(tokenNeeds, issuer, request, context)
        if (token.tag !== 'wallet_token') return token
        const read = readNotification(request.body)
        if ('tag' in read) return read
        const { principal } = token
        const { tenantId, subject } = principal
        const known = await database.tenant(
          tenantId,
          async (tx) => {
            const { ids, changed } = await recordNotification(tx, tenantId, { subject, ...read })
            if (changed)
              appendAudit(tx, [
                audited(
                  { principal, address: request.address },
                  {
                    id: random.uuid(),
                    tenantId,
                    type: 'credential.notification',
                    occurredAt: clock.now(),
                    resource: { type: 'credential', id: ids[0]! },
                    requestId: context.requestId,
                    data: { event: read.event, credential_ids: ids },
                  },
                ),
              ])
            return ids.length > 0
          },
          { signal: context.signal },
        )
        return known ? { tag: 'notified' } : UNKNOWN_NOTIFICATION
      },

      async getCredentialTypeMetadata({ id }) {
        if (!isCredentialConfiguration(id)) return { tag: 'unknown' }
        const { body } = typeMetadata(baseUrl, id)
        const hash = createHash('sha256').update(body).digest('base64url').slice(0, 22)
        const maxAgeSecs = TYPE_METADATA_MAX_AGE_SECS
        return { tag: 'found', body, etag: `"${hash}"`, maxAgeSecs }
      },
    }
  },
})

function recordOf(baseUrl: string, row: IssuedCredentialRow): IssuedRecord {
  return {
    id: row.id,
    offerId: row.offerId,
    userId: row.userId,
    delegationId: row.delegationId,
    configurationId: row.configurationId,
    status: row.revokedAt === null ? 'valid' : 'revoked',
    statusList: { uri: statusListUri(baseUrl, row.listId), idx: row.idx },
    issuedAt: row.createdAt,
    expiresAt: row.expiresAt,
    revokedAt: row.revokedAt,
    revokedReason: row.revokedReason,
  }
}

const UNKNOWN_NOTIFICATION: NotificationRefused = {
  tag: 'notification_refused',
  error: 'invalid_notification_id',
  description: 'the notification_id is unknown',
}

function readObject(body: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  const value = parseStrictJson(body, JSON_DEPTH_MAX)
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined
}

type Notification = { readonly notificationId: string; readonly event: string }

function readNotification(bytes: Uint8Array): Notification | NotificationRefused {
  const refused = (description: string): NotificationRefused => ({
    tag: 'notification_refused',
    error: 'invalid_notification_request',
    description,
  })
  const body = readObject(bytes)
  if (body === undefined) return refused('the body is not a JSON object')
  const { notification_id: id, event, event_description: text } = body
  if (typeof id !== 'string') return refused('notification_id is missing or not a string')
  if (typeof event !== 'string' || !NOTIFICATION_EVENTS.includes(event))
    return refused(`event must be one of ${NOTIFICATION_EVENTS.join(', ')}`)
  if (text !== undefined && (typeof text !== 'string' || text.length > NOTIFICATION_TEXT_MAX))
    return refused('event_description must be a short string')
  return isUuid(id) ? { notificationId: id, event } : UNKNOWN_NOTIFICATION
}
