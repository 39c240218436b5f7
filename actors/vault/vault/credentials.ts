/** Creating, rotating and reading secrets. Sealing happens before, unsealing after a transaction. */
import { denied } from '../../domain/vault/denied.js'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { createOnce } from '../../platform/creation.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  credentialSecretContext,
  findVaultCredential,
  insertVaultCredential,
  lockVaultCredential,
  touchVaultCredentials,
} from '../../../storage/vault/vault-credentials.js'
import { isUuid } from '../../domain/ids.js'
import { metadataSources } from '../../domain/commerce/networks.js'
import type { Principal } from '../../domain/principal.js'
import type { VaultNeeds, VaultHandler } from './needs.js'
import { eventBy } from '../../domain/events.js'
import { auditEntry, credentialResource } from './events.js'
import type {
  CredentialCreated,
  CredentialFound,
  CredentialRevoked,
  OwnerRefused,
  RotateCredential,
  Secret,
  UnknownCredential,
  VaultFull,
  VaultInvalid,
} from './protocol.js'
import type { CredentialType } from '../../domain/entities/vault.js'
import { replaceSecret } from './lapse.js'
import { ownerRefusal } from './ownership.js'
import { changing } from './read.js'
import { credentialOf } from './records.js'
import { authSchemeOf, credentialFault, hostsBeyond, invalid, normalizeHosts } from './rules.js'
import { secretText } from './secret-text.js'
import { inTenant } from '../../platform/in-tenant.js'

const UNKNOWN: UnknownCredential = { tag: 'unknown_credential' }

export const createVaultCredential: VaultHandler<'createVaultCredential'> = async (
  needs,
  message,
  context,
) => {
  const { clock, random, settings } = needs
  const { caller, credentialType, metadata } = message
  const { tenantId, subject, subjectType } = caller.principal
  const fault = credentialFault(message) ?? sourcesFault(credentialType, metadata)
  if (fault !== undefined) return fault
  const authScheme = authSchemeOf(credentialType, message.authScheme)
  if (typeof authScheme !== 'string') return authScheme
  const allowedHosts = normalizeHosts(message.allowedHosts)
  if ('tag' in allowedHosts) return allowedHosts
  const id = random.uuid()
  const { tokenOf } = message
  const sealed =
    tokenOf === null
      ? await seal(needs, tenantId, { ...message, id, authScheme, allowedHosts }, context)
      : NO_SECRET
  if ('tag' in sealed) return sealed
  return createOnce(
    needs,
    message,
    context,
    async (tx): Promise<CredentialCreated | VaultFull | VaultInvalid | OwnerRefused> => {
      const now = clock.now()
      const sourceFault =
        tokenOf === null
          ? undefined
          : await tokenSourceFault(tx, caller.principal, tokenOf, allowedHosts, clock.nowSecs())
      if (sourceFault !== undefined) return sourceFault
      const most = settings.max_credentials_per_tenant
      const row = await insertVaultCredential(
        tx,
        {
          id,
          tenantId,
          ownerType: subjectType,
          ownerId: subject,
          provider: message.provider,
          credentialType,
          label: message.label,
          authScheme,
          allowedHosts: [...allowedHosts],
          nonExportable: message.nonExportable,
          metadata: { ...metadata },
          tokenOf,
          createdAt: now,
          ...sealed,
        },
        most,
      )
      if (row === undefined) return { tag: 'full', most }
      const eventContext = { caller, random, now, requestId: context.requestId }
      const created = eventBy(
        'vault.credential.created',
        credentialResource(row.id),
        eventContext,
        {
          provider: row.provider,
          credential_type: row.credentialType,
          label: row.label,
          auth_scheme: row.authScheme,
          allowed_hosts: row.allowedHosts,
          non_exportable: row.nonExportable,
        },
      )
      appendEvents(tx, [created])
      return { tag: 'created', credential: credentialOf(row), replayed: false }
    },
  )
}

const NO_SECRET = { secret: null, caPublicKey: null } as const

/**
 * Why a new credential with these hosts cannot use the token of credential `id`. Locks that credential
 * until the transaction ends, so that a concurrent revocation or narrowing of its hosts also reaches
 * the new credential.
 */
async function tokenSourceFault(
  tx: Transaction,
  principal: Principal,
  id: string,
  hosts: readonly string[],
  nowSecs: number,
): Promise<VaultInvalid | OwnerRefused | undefined> {
  const row = isUuid(id) ? await lockVaultCredential(tx, principal.tenantId, id) : undefined
  if (row?.credentialType !== 'oauth2' || row.status !== 'active') {
    return invalid('/token_of', 'Must be an active oauth2 credential of the tenant.')
  }
  return (await ownerRefusal(tx, row, principal, nowSecs)) ?? hostsBeyond(hosts, row.allowedHosts)
}

/** The stored secret; for an SSH CA also its public key. */
type SealedSecret = { readonly secret: Uint8Array; readonly caPublicKey: string | null }

type Sealable = {
  readonly id: string
  readonly credentialType: CredentialType
  readonly authScheme: string
  readonly allowedHosts: readonly string[]
  readonly secret: Secret | null
}

async function seal(
  { sealer, sshCertificates, urlFaultOf }: VaultNeeds,
  tenantId: string,
  credential: Sealable,
  context: MessageContext,
): Promise<SealedSecret | VaultInvalid> {
  const { id, credentialType: type, secret } = credential
  let bytes: Uint8Array
  let caPublicKey: string | null = null
  if (type === 'ssh_ca') {
    if (typeof secret === 'object' && secret !== null)
      return invalid('/secret', 'Must be a string for this credential_type.')
    const authority = await sshCertificates.authority({ privateKey: secret }, context)
    if (authority.tag === 'refused') return invalid('/secret', authority.detail)
    bytes = authority.pkcs8
    caPublicKey = authority.caPublicKey
  } else {
    const text = secretText(credential, secret!, urlFaultOf)
    if (typeof text !== 'string') return text
    bytes = new TextEncoder().encode(text)
  }
  try {
    const sealed = await sealer.seal(tenantId, credentialSecretContext(id), bytes)
    return { secret: sealed, caPublicKey }
  } finally {
    bytes.fill(0)
  }
}

/** The metadata of an SSH CA may restrict the source addresses of its certificates. */
export function sourcesFault(
  type: CredentialType,
  metadata: Readonly<Record<string, unknown>>,
): VaultInvalid | undefined {
  if (type !== 'ssh_ca' || metadataSources(metadata) !== undefined) return undefined
  return invalid('/metadata/source_addresses', 'Must be an array of networks such as 10.1.0.0/16.')
}

export const rotateVaultCredential: VaultHandler<'rotateVaultCredential'> = (
  needs,
  message,
  context,
) => {
  return changing(needs, message.caller, rotated(needs, message, context))
}

async function rotated(
  needs: VaultNeeds,
  { caller, credentialId, secret }: RotateCredential,
  context: MessageContext,
): Promise<CredentialFound | UnknownCredential | VaultInvalid | CredentialRevoked | OwnerRefused> {
  const { database, clock, random } = needs
  const { principal } = caller
  const { tenantId } = principal
  if (!isUuid(credentialId)) return UNKNOWN
  const found = await inTenant(database, tenantId, context, async (tx) => {
    const row = await findVaultCredential(tx, tenantId, credentialId)
    if (row === undefined) return UNKNOWN
    return (await ownerRefusal(tx, row, principal, clock.nowSecs())) ?? row
  })
  if ('tag' in found) return found
  if (found.status === 'revoked') return { tag: 'revoked' }
  const { credentialType, tokenOf } = found
  if (tokenOf !== null) return invalid('/secret', `The credential uses the token of ${tokenOf}.`)
  if (secret === null && credentialType !== 'ssh_ca') {
    return invalid('/secret', 'Required for this credential_type.')
  }
  // Type and scheme are immutable, so the checks made before the transaction stay valid.
  const sealed = await seal(needs, tenantId, { ...found, secret }, context)
  if ('tag' in sealed) return sealed
  return inTenant(database, tenantId, context, async (tx) => {
    const locked = await lockVaultCredential(tx, tenantId, credentialId)
    if (locked === undefined) return UNKNOWN
    if (locked.status === 'revoked') return { tag: 'revoked' }
    const now = clock.now()
    const row = await replaceSecret(tx, tenantId, credentialId, sealed, now)
    const eventContext = { caller, random, now, requestId: context.requestId }
    appendAudit(tx, [
      auditEntry('vault.credential.rotated', credentialResource(credentialId), eventContext),
    ])
    return { tag: 'found', credential: credentialOf(row) }
  })
}

/** Returns the secret of an exportable credential to its owner. */
export const readVaultCredentialSecret: VaultHandler<'readVaultCredentialSecret'> = async (
  { database, sealer, clock, random },
  { caller, credentialId },
  context,
) => {
  const { principal } = caller
  const { tenantId } = principal
  if (!isUuid(credentialId)) return UNKNOWN
  const verdict = await inTenant(database, tenantId, context, async (tx) => {
    const row = await findVaultCredential(tx, tenantId, credentialId)
    if (row === undefined) return UNKNOWN
    const refusal = await ownerRefusal(tx, row, principal, clock.nowSecs())
    if (refusal !== undefined && refusal.tag !== 'step_up') return refusal
    if (row.nonExportable)
      return denied('credential_not_exportable', 'The credential is not exportable.')
    if (row.secret === null) return denied('credential_revoked', 'The credential is revoked.')
    // Checked last, so that a person does not step up for a request that is refused anyway.
    if (refusal !== undefined) return refusal
    const now = clock.now()
    await touchVaultCredentials(tx, tenantId, [row.id], now)
    const eventContext = { caller, random, now, requestId: context.requestId }
    const fields = { access: 'secret_read' }
    const resource = credentialResource(row.id)
    appendEvents(tx, [eventBy('vault.credential.accessed', resource, eventContext, fields)])
    return { tag: 'row', type: row.credentialType, secret: row.secret } as const
  })
  if (verdict.tag !== 'row') return verdict
  const bytes = await sealer.open(tenantId, credentialSecretContext(credentialId), verdict.secret)
  const secret = verdict.type === 'ssh_ca' ? pem(bytes) : new TextDecoder().decode(bytes)
  bytes.fill(0)
  return { tag: 'secret', credentialId, secret }
}

/** The stored PKCS#8 key of an SSH CA as a PEM block (RFC 7468 section 10). */
function pem(pkcs8: Uint8Array): string {
  const lines =
    Buffer.from(pkcs8)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return ['-----BEGIN PRIVATE KEY-----', ...lines, '-----END PRIVATE KEY-----', ''].join('\n')
}
