/** Signing certificates. */
import { type Denied, denied } from '../../domain/vault/denied.js'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { isKeyRevoked } from '../../../storage/vault/ssh-authorities.js'
import { insertSshCertificate } from '../../../storage/vault/ssh-certificates.js'
import {
  credentialSecretContext,
  findVaultCredential,
  lockVaultCredential,
  type SecretCredentialRow,
  touchVaultCredentials,
} from '../../../storage/vault/vault-credentials.js'
import {
  findSigningGrants,
  holdSigningGrant,
  type SigningGrantRow,
} from '../../../storage/vault/vault-grants.js'
import { eventBy } from '../../domain/events.js'
import { isUuid } from '../../domain/ids.js'
import { metadataSources } from '../../domain/commerce/networks.js'
import type { Principal } from '../../domain/principal.js'
import type { SshCertificatesNeeds, SshHandler } from './needs.js'
import type { CertificateSigned, SignCertificate, SshUnknown } from './protocol.js'
import { judgeRequest, type CertificateTerms, sourcesWithin } from './rules.js'
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
  const validBeforeSecs = Math.min(nowSecs + terms.validitySecs, endSecs(grant))
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
        validBeforeSecs,
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
  const expiresAt = new Date(validBeforeSecs * 1000)
  const certified = publicKey.split(' ').slice(0, 2).join(' ')
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
    if (locked?.status !== 'active') return REVOKED
    if (grant !== null && !(await holdSigningGrant(tx, tenantId, grant.id, issuedAt)))
      return REVOKED
    if (await isKeyRevoked(tx, tenantId, row.id, certified)) return KEY_REVOKED
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
      grantId: grant?.id ?? null,
      delegationId: grant?.granteeType === 'delegation' ? grant.granteeId : null,
      publicKey: certified,
      issuedAt,
      expiresAt,
    })
    appendEvents(tx, [accessEvent(needs, request, signed, grant, context)])
    return undefined
  })
  if (recorded !== undefined) return recorded
  metrics.signed()
  return signed
}

function accessEvent(
  { clock, random }: SshCertificatesNeeds,
  { caller, credentialId }: SignCertificate,
  { serial, principals, targetHost, validBefore }: CertificateSigned,
  grant: SigningGrantRow | null,
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

type Authority = { readonly row: SecretCredentialRow; readonly grant: SigningGrantRow | null }

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

/** A certificate does not outlive the grant that signs it, nor its delegation. */
function endSecs(grant: SigningGrantRow | null): number {
  const ends = [grant?.expiresAt, grant?.delegationEndsAt]
  return Math.min(...ends.map((end) => (end ? Math.floor(end.getTime() / 1000) : Infinity)))
}

function isActive({ revokedAt, expiresAt }: SigningGrantRow, now: Date): boolean {
  return revokedAt === null && (expiresAt === null || expiresAt > now)
}

export function owns({ subject, subjectType }: Principal, row: SecretCredentialRow): boolean {
  return row.ownerType === subjectType && row.ownerId === subject
}

/** Both the authority and the snapshot of the grant must allow the host; an empty list allows any. */
function refusal(
  row: SecretCredentialRow,
  grant: SigningGrantRow | null,
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
const KEY_REVOKED = denied('key_revoked', 'The key is revoked at the certificate authority.')

/** Never 0, which means "no serial" to OpenSSH. */
function freshSerial(random: Random): string {
  for (;;) {
    const serial = Buffer.from(random.bytes(SERIAL_BYTES)).readBigUInt64BE()
    if (serial !== 0n) return serial.toString()
  }
}
