/** What wallets request: nonces, credentials, notifications and type metadata (OpenID4VCI sections 7, 8 and 11). */
import { createHash } from 'node:crypto'
import { notifyIssuedCredentials } from '../../../storage/oauth/credential-issuance.js'
import { ANONYMOUS_CLIENT, isCredentialConfiguration } from '../../domain/credentials/catalogue.js'
import { typeMetadata } from '../../domain/credentials/configurations.js'
import { isUuid } from '../../domain/ids.js'
import type { ImportedKey } from '../../platform/jose/external-jwk.js'
import { parseStrictJson } from '../../platform/jose/strict-json.js'
import { recordAudit } from '../../platform/record-audit.js'
import { issueCredentials } from './issue.js'
import type { Issuer } from './issuers.js'
import { readProofs, verifyProof } from './key-proofs.js'
import { type CredentialRefused, credentialRefused, type NotificationRefused } from './protocol.js'
import type { Handling, IssuanceTools } from './tools.js'
import {
  offersNothing,
  readRequestedCredential,
  walletToken,
  type WalletToken,
} from './wallet-token.js'
import { inTenant } from '../../platform/in-tenant.js'

const JSON_DEPTH_MAX = 16
const TYPE_METADATA_MAX_AGE_SECS = 3_600
const NOTIFICATION_EVENTS = ['credential_accepted', 'credential_failure', 'credential_deleted']
const NOTIFICATION_TEXT_MAX = 1_024

// Also the operation `createTenantCredentialNonce`.
export const createCredentialNonce: Handling<'createCredentialNonce'> = async (
  { issuers, nonces, baseUrl },
  { tenantSlug },
  context,
) => {
  const issuer = await issuers.bySlug(tenantSlug, context)
  if (issuer === null && tenantSlug !== null) return { tag: 'not_enabled' }
  return { tag: 'made', nonce: await nonces.make(issuer?.identifier ?? baseUrl) }
}

// Also the operation `requestTenantCredential`.
export const requestCredential: Handling<'requestCredential'> = async (tools, request, context) => {
  const issuer = await tools.issuers.bySlug(request.tenantSlug, context)
  if (issuer === null)
    return request.tenantSlug === null
      ? offersNothing(tools, request, context)
      : { tag: 'not_enabled' }
  const token = await walletToken(tools, issuer, request, context)
  if (token.tag !== 'wallet_token') return token
  const body = readObject(request.body)
  if (body === undefined)
    return credentialRefused('invalid_credential_request', 'the body is not a JSON object')
  const requested = readRequestedCredential(body, token)
  if ('tag' in requested) return requested
  const keys = await proven(tools, body['proofs'], issuer, token)
  if ('tag' in keys) return keys
  const { configurationId } = requested
  const { address } = request
  const issue = { issuer, configurationId, token, proofKeys: keys, address }
  const outcome = await issueCredentials(tools, issue, context)
  if (outcome.tag === 'issued')
    tools.issued.inc({ configuration: configurationId }, outcome.credentials.length)
  return outcome
}

// Also the operation `notifyTenantCredentialIssuer`.
export const notifyRootCredentialIssuer: Handling<'notifyRootCredentialIssuer'> = async (
  tools,
  request,
  context,
) => {
  const issuer = await tools.issuers.bySlug(request.tenantSlug, context)
  if (issuer === null) return { tag: 'not_enabled' }
  const token = await walletToken(tools, issuer, request, context)
  if (token.tag !== 'wallet_token') return token
  const read = readNotification(request.body)
  if ('tag' in read) return read
  const { principal } = token
  const { tenantId, subject } = principal
  const known = await inTenant(tools.database, tenantId, context, async (tx) => {
    const { ids, changed } = await notifyIssuedCredentials(tx, tenantId, { subject, ...read })
    const caller = { principal, address: request.address }
    if (changed)
      recordAudit(tx, tools, caller, context, {
        type: 'credential.notification',
        resource: { type: 'credential', id: ids[0]! },
        data: { event: read.event, credential_ids: ids },
      })
    return ids.length > 0
  })
  return known ? { tag: 'notified' } : UNKNOWN_NOTIFICATION
}

export const getCredentialTypeMetadata: Handling<'getCredentialTypeMetadata'> = async (
  { baseUrl },
  { id },
) => {
  if (!isCredentialConfiguration(id)) return { tag: 'unknown' }
  const { body } = typeMetadata(baseUrl, id)
  const hash = createHash('sha256').update(body).digest('base64url').slice(0, 22)
  return { tag: 'found', body, etag: `"${hash}"`, maxAgeSecs: TYPE_METADATA_MAX_AGE_SECS }
}

/** The keys of valid proofs whose nonces are now used up, in the order of the proofs. */
async function proven(
  { clock, nonces }: IssuanceTools,
  proofs: unknown,
  { identifier }: Issuer,
  { principal: { clientId } }: WalletToken,
): Promise<readonly ImportedKey[] | CredentialRefused> {
  const read = readProofs(proofs)
  if ('fault' in read) return credentialRefused('invalid_proof', read.fault)
  const demands = {
    audience: identifier,
    clientId: clientId === ANONYMOUS_CLIENT ? null : clientId,
    nowSecs: clock.nowSecs(),
  }
  const keys: ImportedKey[] = []
  const found = new Set<string>()
  for (const proof of read) {
    const verified = await verifyProof(proof, demands)
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
    const expiresAtSecs = await nonces.read(identifier, nonce)
    if (expiresAtSecs === null) return invalid
    expiries.set(nonce, expiresAtSecs)
  }
  for (const [nonce, expiresAtSecs] of expiries)
    if (!(await nonces.use(nonce, expiresAtSecs))) return invalid
  return keys
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
