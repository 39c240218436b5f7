/** Secrets on their way in and out of the vault: sealed before a transaction, opened after one. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import { forgetManagedToken } from '../../../storage/vault/managed-tokens.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  credentialSecretContext,
  findVaultCredential,
  insertVaultCredential,
  lockVaultCredential,
  replaceCredentialSecret,
  touchVaultCredentials,
} from '../../../storage/vault/vault-credentials.js'
import { isUuid } from '../../domain/ids.js'
import { metadataSources } from '../../domain/commerce/networks.js'
import type { Principal } from '../../domain/principal.js'
import type { VaultNeeds } from './needs.js'
import { credentialCreated, credentialResource, noted, secretAccessed } from './events.js'
import type {
  ChangeCredential,
  CreateCredential,
  CredentialCreated,
  CredentialFound,
  CredentialRevoked,
  CredentialType,
  IdempotencyRefused,
  OwnerRefused,
  RotateCredential,
  SecretRead,
  UnknownCredential,
  VaultFull,
  VaultInvalid,
} from './protocol.js'
import { denied, ownerRefusal } from './ownership.js'
import { credentialOf } from './records.js'
import {
  authSchemeOf,
  credentialFault,
  hostsBeyond,
  invalid,
  normalizeHosts,
  secretFault,
} from './rules.js'

const UNKNOWN: UnknownCredential = { tag: 'unknown_credential' }

export async function createCredential(
  needs: VaultNeeds,
  message: CreateCredential,
  context: MessageContext,
): Promise<CredentialCreated | VaultInvalid | VaultFull | IdempotencyRefused | OwnerRefused> {
  const { database, clock, random, settings } = needs
  const { caller, credentialType, metadata, idempotency } = message
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
      ? await seal(needs, tenantId, id, credentialType, authScheme, message.secret, context)
      : NO_SECRET
  if ('tag' in sealed) return sealed
  return database.tenant(
    tenantId,
    (tx) =>
      idempotently(
        tx,
        idempotency,
        async (): Promise<CredentialCreated | VaultFull | VaultInvalid | OwnerRefused> => {
          const now = clock.now()
          const unfit =
            tokenOf === null
              ? undefined
              : await carrierFault(tx, caller.principal, tokenOf, allowedHosts, clock.nowSecs())
          if (unfit !== undefined) return unfit
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
          appendEvents(tx, [credentialCreated(row, eventContext)])
          return { tag: 'created', credential: credentialOf(row), replayed: false }
        },
        (outcome) => (outcome.tag === 'created' ? outcome : undefined),
      ),
    { signal: context.signal },
  )
}

const NO_SECRET = { secret: null, caPublicKey: null } as const

/**
 * Why the principal may not have a credential with these hosts carry the token of the other one. That
 * one stays locked until the transaction ends: its hosts are not narrowed and it is not revoked before
 * the new credential is there to be narrowed and revoked with it.
 */
async function carrierFault(
  tx: Transaction,
  principal: Principal,
  id: string,
  hosts: readonly string[],
  nowSecs: number,
): Promise<VaultInvalid | OwnerRefused | undefined> {
  const row = isUuid(id) ? await lockVaultCredential(tx, principal.tenantId, id) : undefined
  if (row?.credentialType !== 'oauth2' || row.status !== 'active') {
    return invalid('/token_of', 'An active oauth2 credential of the tenant.')
  }
  return (await ownerRefusal(tx, row, principal, nowSecs)) ?? hostsBeyond(hosts, row.allowedHosts)
}

/** The secret as it is stored, and of an authority its public key. */
type SealedSecret = { readonly secret: Uint8Array; readonly caPublicKey: string | null }

async function seal(
  { sealer, sshCertificates }: VaultNeeds,
  tenantId: string,
  id: string,
  type: CredentialType,
  authScheme: string,
  secret: string | null,
  context: MessageContext,
): Promise<SealedSecret | VaultInvalid> {
  let bytes: Uint8Array
  let caPublicKey: string | null = null
  if (type === 'ssh_ca') {
    const made = await sshCertificates.ask('authority', { privateKey: secret }, context)
    if (made.tag === 'refused') return invalid('/secret', made.detail)
    bytes = made.pkcs8
    caPublicKey = made.caPublicKey
  } else {
    const fault = secretFault(type, authScheme, secret!)
    if (fault !== undefined) return fault
    bytes = new TextEncoder().encode(secret!)
  }
  try {
    const sealed = await sealer.seal(tenantId, credentialSecretContext(id), bytes)
    return { secret: sealed, caPublicKey }
  } finally {
    bytes.fill(0)
  }
}

/** An authority's metadata may say from where its certificates are good (decisions.md 6). */
export function sourcesFault(
  type: CredentialType,
  metadata: Readonly<Record<string, unknown>>,
): VaultInvalid | undefined {
  if (type !== 'ssh_ca' || metadataSources(metadata) !== undefined) return undefined
  return invalid('/metadata/source_addresses', 'An array of networks such as 10.1.0.0/16.')
}

export async function rotateSecret(
  needs: VaultNeeds,
  { caller, credentialId, secret }: RotateCredential,
  context: MessageContext,
): Promise<CredentialFound | UnknownCredential | VaultInvalid | CredentialRevoked | OwnerRefused> {
  const { database, clock, random } = needs
  const { signal } = context
  const { principal } = caller
  const { tenantId } = principal
  if (!isUuid(credentialId)) return UNKNOWN
  const found = await database.tenant(
    tenantId,
    async (tx) => {
      const row = await findVaultCredential(tx, tenantId, credentialId)
      if (row === undefined) return UNKNOWN
      return (await ownerRefusal(tx, row, principal, clock.nowSecs())) ?? row
    },
    { signal },
  )
  if ('tag' in found) return found
  if (found.status === 'revoked') return { tag: 'revoked' }
  const { credentialType, authScheme, tokenOf } = found
  if (tokenOf !== null) return invalid('/secret', `Its secret is the token of ${tokenOf}.`)
  if (secret === null && credentialType !== 'ssh_ca') {
    return invalid('/secret', 'This type needs a secret.')
  }
  // Type and scheme never change, so what was judged outside of the transaction holds inside.
  const sealed = await seal(
    needs,
    tenantId,
    credentialId,
    credentialType,
    authScheme,
    secret,
    context,
  )
  if ('tag' in sealed) return sealed
  return database.tenant(
    tenantId,
    async (tx) => {
      const locked = await lockVaultCredential(tx, tenantId, credentialId)
      if (locked === undefined) return UNKNOWN
      if (locked.status === 'revoked') return { tag: 'revoked' }
      const now = clock.now()
      const row = await replaceCredentialSecret(
        tx,
        tenantId,
        credentialId,
        sealed.secret,
        sealed.caPublicKey,
        now,
      )
      // Access tokens of the secret before are not this one's.
      await forgetManagedToken(tx, tenantId, credentialId)
      const eventContext = { caller, random, now, requestId: context.requestId }
      appendAudit(tx, [
        noted('vault.credential.rotated', credentialResource(credentialId), eventContext),
      ])
      return { tag: 'found', credential: credentialOf(row) }
    },
    { signal },
  )
}

/** The owner takes a secret out, unless it was put in as not exportable. */
export async function readSecret(
  { database, sealer, clock, random }: VaultNeeds,
  { caller, credentialId }: ChangeCredential,
  context: MessageContext,
): Promise<SecretRead | UnknownCredential | OwnerRefused> {
  const { principal } = caller
  const { tenantId } = principal
  if (!isUuid(credentialId)) return UNKNOWN
  const verdict = await database.tenant(
    tenantId,
    async (tx) => {
      const row = await findVaultCredential(tx, tenantId, credentialId)
      if (row === undefined) return UNKNOWN
      const refusal = await ownerRefusal(tx, row, principal, clock.nowSecs())
      if (refusal !== undefined && refusal.tag !== 'step_up') return refusal
      if (row.nonExportable) return denied('The credential is not exportable.')
      if (row.status !== 'active' || row.secret === null)
        return denied('The credential is revoked.')
      // Last: a person does not sign in again for what is refused all the same.
      if (refusal !== undefined) return refusal
      const now = clock.now()
      await touchVaultCredentials(tx, tenantId, [row.id], now)
      const eventContext = { caller, random, now, requestId: context.requestId }
      appendEvents(tx, [secretAccessed(row, eventContext)])
      return { tag: 'row', type: row.credentialType, secret: row.secret } as const
    },
    { signal: context.signal },
  )
  if (verdict.tag !== 'row') return verdict
  const bytes = await sealer.open(tenantId, credentialSecretContext(credentialId), verdict.secret)
  const secret = verdict.type === 'ssh_ca' ? pem(bytes) : new TextDecoder().decode(bytes)
  bytes.fill(0)
  return { tag: 'secret', credentialId, secret }
}

/** An authority is kept as PKCS#8; as text it is a PEM block (RFC 7468 section 10). */
function pem(pkcs8: Uint8Array): string {
  const lines =
    Buffer.from(pkcs8)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return ['-----BEGIN PRIVATE KEY-----', ...lines, '-----END PRIVATE KEY-----', ''].join('\n')
}
