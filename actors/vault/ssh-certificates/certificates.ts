/** Signing and revoking certificates, and the list of the revoked ones. */
import { type Denied, denied } from '../../domain/vault/denied.js'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  insertSshCertificate,
  listCertifyingKeys,
  listRevokedCertificates,
  revokeCertificate,
} from '../../../storage/vault/ssh-certificates.js'
import {
  credentialSecretContext,
  findVaultCredential,
  lockVaultCredential,
  type SecretCredentialRow,
  touchVaultCredentials,
} from '../../../storage/vault/vault-credentials.js'
import { findSigningGrants, type VaultGrantRow } from '../../../storage/vault/vault-grants.js'
import { recordAudit } from '../../platform/record-audit.js'
import { eventBy } from '../../domain/events.js'
import { isUuid } from '../../domain/ids.js'
import { metadataSources } from '../../domain/commerce/networks.js'
import type { Principal } from '../../domain/principal.js'
import { encodeKrl } from './krl.js'
import type { SshCertificatesNeeds, SshHandler } from './needs.js'
import type { CertificateSigned, SignCertificate, SshUnknown } from './protocol.js'
import { judgeRequest, readSerial, type CertificateTerms, sourcesWithin } from './rules.js'
import { inTenant } from '../../platform/in-tenant.js'

/** `valid_after` lies this far in the past, so that servers with a slow clock accept the certificate. */
const CLOCK_SKEW_SECS = 60
const NONCE_BYTES = 32
const SERIAL_BYTES = 8
const UNKNOWN: SshUnknown = { tag: 'unknown' }

export const signSshCertificate: SshHandler<'signSshCertificate'> = async (
  needs,
  request,
  context,
) => {
  const { database, sealer, compute, clock, random, metrics, settings } = needs
  const { caller, credentialId } = request
  const { principal } = caller
  const { tenantId } = principal
  const terms = judgeRequest(request, {
    defaultValiditySecs: settings.ssh_default_validity_secs,
    maxValiditySecs: settings.ssh_max_validity_secs,
  })
  if ('tag' in terms) return terms
  if (!isUuid(credentialId)) return UNKNOWN
  const found = await inTenant(database, tenantId, context, (tx) =>
    authorityOf(tx, principal, credentialId, clock.now()),
  )
  if (found === undefined) return UNKNOWN
  const { row, grant } = found
  const fault = refusal(row, grant, terms)
  if (fault !== undefined) return fault
  const sources = sourcesWithin(metadataSources(row.metadata) ?? [], request.sourceAddresses)
  if (sources === undefined)
    return denied(
      'source_address_restricted',
      'The certificate authority restricts source addresses further.',
    )

  const issuedAt = clock.now()
  const nowSecs = Math.floor(issuedAt.getTime() / 1000)
  const keyId = `svc:${tenantId}:${principal.subject}`
  const serial = freshSerial(random)
  const authority = await sealer.open(tenantId, credentialSecretContext(row.id), row.secret!)
  const signing = await compute
    .run(
      'certificate',
      {
        authority: { pkcs8: authority, caPublicKey: row.caPublicKey ?? '' },
        publicKey: request.publicKey,
        keyId,
        serial,
        nonce: random.bytes(NONCE_BYTES),
        principals: terms.principals,
        targetHost: terms.targetHost,
        validAfterSecs: nowSecs - CLOCK_SKEW_SECS,
        validBeforeSecs: nowSecs + terms.validitySecs,
        sourceAddresses: sources,
        forceCommand: request.forceCommand,
      },
      context,
    )
    .finally(() => authority.fill(0))
  if (signing.tag === 'bad_key') {
    const detail = 'Must be an OpenSSH public key of type ssh-ed25519 or ecdsa-sha2-nistp256.'
    return { tag: 'invalid', pointer: '/public_key', detail }
  }
  const { certificate, privateKey, publicKey, caPublicKey } = signing
  const expiresAt = new Date((nowSecs + terms.validitySecs) * 1000)
  const { targetHost, principals } = terms
  const signed: CertificateSigned = {
    tag: 'signed',
    certificate,
    privateKey,
    publicKey,
    keyId,
    serial,
    principals,
    targetHost,
    validAfter: new Date((nowSecs - CLOCK_SKEW_SECS) * 1000),
    validBefore: expiresAt,
    caPublicKey,
  }
  const recorded = await inTenant(database, tenantId, context, async (tx) => {
    // A revocation takes the same lock: it sees this certificate, or this call sees the revocation.
    const locked = await lockVaultCredential(tx, tenantId, row.id)
    if (locked?.status !== 'active') return false
    if (grant !== null && !(await stillGranted(tx, principal, grant, issuedAt))) return false
    await touchVaultCredentials(tx, tenantId, [row.id], issuedAt)
    await insertSshCertificate(tx, {
      tenantId,
      credentialId: row.id,
      serial,
      agentId: principal.subject,
      keyId,
      targetHost,
      principals,
      caPublicKey,
      issuedAt,
      expiresAt,
    })
    appendEvents(tx, [accessEvent(needs, request, signed, grant, context)])
    return true
  })
  if (!recorded) return REVOKED
  metrics.signed()
  return signed
}

export const revokeSshCertificate: SshHandler<'revokeSshCertificate'> = async (
  { database, clock, random },
  { caller, credentialId, serial: text },
  context,
) => {
  const { principal } = caller
  const { tenantId } = principal
  const manages = principal.scopes.includes('vault:manage')
  const unknown = manages ? UNKNOWN : ({ tag: 'not_owner' } as const)
  const serial = readSerial(text)
  if (!isUuid(credentialId) || serial === undefined) return unknown
  return inTenant(database, tenantId, context, async (tx) => {
    const row = await findVaultCredential(tx, tenantId, credentialId)
    if (row === undefined || !(manages || owns(principal, row))) return unknown
    if (row.credentialType !== 'ssh_ca') return UNKNOWN
    const revoked = await revokeCertificate(tx, tenantId, row.id, serial, clock.now())
    if (revoked === undefined) return UNKNOWN
    if (revoked.first) {
      recordAudit(tx, { clock, random }, caller, context, {
        type: 'vault.certificate.revoked',
        resource: { type: 'vault_credential', id: row.id },
        data: { serial },
      })
    }
    return { tag: 'certificate_revoked', serial, revokedAt: revoked.revokedAt }
  })
}

export const getSshRevocationList: SshHandler<'getSshRevocationList'> = async (
  { database, clock },
  { tenantId, credentialId },
  context,
) => {
  if (!isUuid(credentialId)) return UNKNOWN
  return inTenant(database, tenantId, context, async (tx) => {
    const row = await findVaultCredential(tx, tenantId, credentialId)
    if (row === undefined || row.caPublicKey === null) return UNKNOWN
    const now = clock.now()
    const revoked = await listRevokedCertificates(tx, tenantId, row.id, now)
    const ended = row.status === 'revoked'
    const signing = ended ? await listCertifyingKeys(tx, tenantId, row.id, now) : []
    const changed = revoked.map(({ revokedAt }) => revokedAt.getTime())
    const krl = encodeKrl({
      version: BigInt(Math.max(row.updatedAt.getTime(), ...changed)),
      generatedSecs: Math.floor(now.getTime() / 1000),
      comment: `svc:${tenantId}:${row.id}`,
      serials: grouped(revoked),
      keys: ended ? [...new Set([row.caPublicKey, ...signing])] : [],
    })
    return { tag: 'list', krl: new Uint8Array(krl) }
  })
}

function accessEvent(
  { clock, random }: SshCertificatesNeeds,
  { caller, credentialId }: SignCertificate,
  { serial, principals, targetHost, validBefore }: CertificateSigned,
  grant: VaultGrantRow | null,
  { requestId }: MessageContext,
) {
  const resource = { type: 'vault_credential', id: credentialId }
  const eventContext = { caller, random, now: clock.now(), requestId }
  const event = eventBy('vault.credential.accessed', resource, eventContext, {
    access: 'ssh_sign',
    serial,
    principals,
    target_host: targetHost,
    valid_before: validBefore.toISOString(),
  })
  return { ...event, audit: { grantId: grant?.id ?? null, ...event.audit } }
}

type Authority = { readonly row: SecretCredentialRow; readonly grant: VaultGrantRow | null }

/**
 * The credential, if the agent owns it or has a grant to sign with it. An agent whose grant ended with
 * the credential finds it too, and gets an error that says so.
 */
async function authorityOf(
  tx: Transaction,
  principal: Principal,
  credentialId: string,
  now: Date,
): Promise<Authority | undefined> {
  const row = await findVaultCredential(tx, principal.tenantId, credentialId)
  if (row === undefined) return undefined
  if (owns(principal, row)) return { row, grant: null }
  const grants = await findSigningGrants(tx, row.tenantId, row.id, principal.subject, now)
  const grant =
    row.status === 'active'
      ? grants.find((candidate) => isActive(candidate, now))
      : grants.find(({ revokedAt }) => revokedAt?.getTime() === row.updatedAt.getTime())
  return grant && { row, grant }
}

async function stillGranted(
  tx: Transaction,
  { tenantId, subject }: Principal,
  grant: VaultGrantRow,
  now: Date,
): Promise<boolean> {
  const grants = await findSigningGrants(tx, tenantId, grant.credentialId, subject, now)
  return grants.some((current) => current.id === grant.id && isActive(current, now))
}

function isActive({ revokedAt, expiresAt }: VaultGrantRow, now: Date): boolean {
  return revokedAt === null && (expiresAt === null || expiresAt > now)
}

function owns({ subject, subjectType }: Principal, row: SecretCredentialRow): boolean {
  return row.ownerType === subjectType && row.ownerId === subject
}

/** Both the authority and the snapshot of the grant must allow the host; an empty list allows any. */
function refusal(
  row: SecretCredentialRow,
  grant: VaultGrantRow | null,
  { targetHost }: CertificateTerms,
): Denied | undefined {
  if (row.credentialType !== 'ssh_ca')
    return denied(
      'credential_type_unsupported',
      'The credential is not an SSH certificate authority.',
    )
  if (row.status !== 'active') return REVOKED
  const lists = [row.allowedHosts, grant?.snapshot.allowed_hosts ?? []]
  const inside = lists.every((hosts) => hosts.length === 0 || hosts.includes(targetHost))
  return inside
    ? undefined
    : denied('host_not_allowed', 'The certificate authority does not allow this host.')
}

const REVOKED = denied('credential_revoked', 'The certificate authority is revoked.')

/** Never 0, which means "no serial" to OpenSSH. */
function freshSerial(random: Random): string {
  for (;;) {
    const serial = Buffer.from(random.bytes(SERIAL_BYTES)).readBigUInt64BE()
    if (serial !== 0n) return serial.toString()
  }
}

function grouped(
  revoked: readonly { caPublicKey: string; serial: string }[],
): ReadonlyMap<string, readonly bigint[]> {
  const byKey = new Map<string, bigint[]>()
  for (const { caPublicKey, serial } of revoked) {
    const serials = byKey.get(caPublicKey)
    if (serials === undefined) byKey.set(caPublicKey, [BigInt(serial)])
    else serials.push(BigInt(serial))
  }
  return byKey
}
