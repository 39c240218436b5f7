/** Secrets on their way in and out of the vault: sealed before a transaction, opened after one. */
import type { Turn } from '../../runtime/kernel/actor.js'
import { appendAudit } from '../../storage/audit.js'
import { idempotently } from '../../storage/idempotency.js'
import { forgetManagedToken } from '../../storage/managed-tokens.js'
import { appendEvents } from '../../storage/outbox.js'
import type { Transaction } from '../../storage/sql.js'
import {
  credentialSecretContext,
  findVaultCredential,
  insertVaultCredential,
  lockVaultCredential,
  replaceCredentialSecret,
  touchVaultCredentials,
} from '../../storage/vault-credentials.js'
import { isUuid } from '../domain/ids.js'
import { metadataSources } from '../domain/networks.js'
import type { Principal } from '../domain/principal.js'
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
  RotateCredential,
  SecretRead,
  StepUpNeeded,
  UnknownCredential,
  VaultDenied,
  VaultFull,
  VaultInvalid,
} from './protocol.js'
import { credentialOf } from './records.js'
import { authSchemeOf, credentialFault, invalid, normalizeHosts, secretFault } from './rules.js'

/** A human who reads a secret has signed in with two factors within this (interface.md, Limits). */
const FRESH_SECS = 300
const UNKNOWN: UnknownCredential = { tag: 'unknown_credential' }

export async function createCredential(
  needs: VaultNeeds,
  message: CreateCredential,
  turn: Turn,
): Promise<CredentialCreated | VaultInvalid | VaultFull | IdempotencyRefused> {
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
      ? await seal(needs, tenantId, id, credentialType, authScheme, message.secret, turn)
      : NO_SECRET
  if ('tag' in sealed) return sealed
  return database.tenant(
    tenantId,
    (tx) =>
      idempotently(
        tx,
        idempotency,
        async (): Promise<CredentialCreated | VaultFull | VaultInvalid> => {
          const now = clock.now()
          if (tokenOf !== null && !(await givesTokens(tx, tenantId, tokenOf))) {
            return invalid('/token_of', 'An active oauth2 credential of the tenant.')
          }
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
          const telling = { caller, random, now, requestId: turn.requestId }
          appendEvents(tx, [credentialCreated(row, telling)])
          return { tag: 'created', credential: credentialOf(row), replayed: false }
        },
        (outcome) => (outcome.tag === 'created' ? outcome : undefined),
      ),
    { signal: turn.signal },
  )
}

const NO_SECRET = { secret: null, caPublicKey: null } as const

/** Held until the transaction ends: its revocation ends what carries its tokens, too. */
async function givesTokens(tx: Transaction, tenantId: string, id: string): Promise<boolean> {
  const row = isUuid(id) ? await lockVaultCredential(tx, tenantId, id) : undefined
  return row?.credentialType === 'oauth2' && row.status === 'active'
}

/** The secret as it is stored, and of an authority its public key. */
type SealedSecret = { readonly secret: Uint8Array; readonly caPublicKey: string | null }

async function seal(
  { sealer, sshca }: VaultNeeds,
  tenantId: string,
  id: string,
  type: CredentialType,
  authScheme: string,
  secret: string | null,
  turn: Turn,
): Promise<SealedSecret | VaultInvalid> {
  let bytes: Uint8Array
  let caPublicKey: string | null = null
  if (type === 'ssh_ca') {
    const made = await sshca.ask('authority', { privateKey: secret }, turn)
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
  turn: Turn,
): Promise<CredentialFound | UnknownCredential | VaultInvalid | CredentialRevoked> {
  const { database, clock, random } = needs
  const { signal } = turn
  const { tenantId } = caller.principal
  if (!isUuid(credentialId)) return UNKNOWN
  const found = await database.tenant(
    tenantId,
    (tx) => findVaultCredential(tx, tenantId, credentialId),
    { signal },
  )
  if (found === undefined) return UNKNOWN
  if (found.status === 'revoked') return { tag: 'revoked' }
  const { credentialType, authScheme, tokenOf } = found
  if (tokenOf !== null) return invalid('/secret', `Its secret is the token of ${tokenOf}.`)
  if (secret === null && credentialType !== 'ssh_ca') {
    return invalid('/secret', 'This type needs a secret.')
  }
  // Type and scheme never change, so what was judged outside of the transaction holds inside.
  const sealed = await seal(needs, tenantId, credentialId, credentialType, authScheme, secret, turn)
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
      const telling = { caller, random, now, requestId: turn.requestId }
      appendAudit(tx, [
        noted('vault.credential.rotated', credentialResource(credentialId), telling),
      ])
      return { tag: 'found', credential: credentialOf(row) }
    },
    { signal },
  )
}

/** Only who put a secret in takes it out, and only where it was not said to stay. */
export async function readSecret(
  { database, sealer, clock, random }: VaultNeeds,
  { caller, credentialId }: ChangeCredential,
  turn: Turn,
): Promise<SecretRead | UnknownCredential | VaultDenied | StepUpNeeded> {
  const { principal } = caller
  const { tenantId } = principal
  if (!isUuid(credentialId)) return UNKNOWN
  const verdict = await database.tenant(
    tenantId,
    async (tx) => {
      const row = await findVaultCredential(tx, tenantId, credentialId)
      if (row === undefined) return UNKNOWN
      if (row.ownerType !== principal.subjectType || row.ownerId !== principal.subject) {
        return denied('Only the owner of the credential reads its secret.')
      }
      if (row.nonExportable) return denied('The credential is not exportable.')
      if (row.status !== 'active' || row.secret === null)
        return denied('The credential is revoked.')
      if (!isFresh(principal, clock.nowSecs())) {
        return { tag: 'step_up', maxAgeSecs: FRESH_SECS } as const
      }
      const now = clock.now()
      await touchVaultCredentials(tx, tenantId, [row.id], now)
      const telling = { caller, random, now, requestId: turn.requestId }
      appendEvents(tx, [secretAccessed(row, telling)])
      return { tag: 'row', type: row.credentialType, secret: row.secret } as const
    },
    { signal: turn.signal },
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

function isFresh({ subjectType, acr, authTimeSecs }: Principal, nowSecs: number): boolean {
  if (subjectType !== 'human') return true
  if (acr !== 'aal2' && acr !== 'aal3') return false
  return authTimeSecs !== null && nowSecs - authTimeSecs <= FRESH_SECS
}

function denied(detail: string): VaultDenied {
  return { tag: 'denied', detail }
}
