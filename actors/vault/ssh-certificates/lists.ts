/** Revoking certificates, and the files that hosts poll. */
import { createHash } from 'node:crypto'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import {
  findSshAuthority,
  revokeSshKey,
  insertSshAuthority,
  keepListVersion,
  listKeyContext,
  servesHosts,
  type SshAuthorityRow,
  tenantOfAuthority,
} from '../../../storage/vault/ssh-authorities.js'
import {
  listCertifyingKeys,
  listRevokedCertificates,
  revokeCertificates,
} from '../../../storage/vault/ssh-certificates.js'
import { findVaultCredential } from '../../../storage/vault/vault-credentials.js'
import { isUuid } from '../../domain/ids.js'
import { joined } from '../../platform/batching/joined.js'
import { inTenant } from '../../platform/in-tenant.js'
import { recordAudit } from '../../platform/record-audit.js'
import { owns } from './certificates.js'
import { encodeKrl } from './krl.js'
import type { SshCertificatesNeeds, SshHandler } from './needs.js'
import type { CertificateRevoked, SshBusy, SshInvalid, SshUnknown, TrustFile } from './protocol.js'
import { readName } from './rules.js'
import { invalid } from '../../domain/entities/messages.js'

const REVOKED_KEYS_MAX = 4_096
/** Signatures and tenants in memory. */
const KEPT_MAX = 4_096
/** Hosts that poll at a time: the other places of the mailbox (actor.ts) are for those who sign and revoke. */
const POLLS_MAX = 64
const UNKNOWN: SshUnknown = { tag: 'unknown' }

export const revokeSshCertificate: SshHandler<'revokeSshCertificate'> = async (
  needs,
  { caller, credentialId, by, value },
  context,
) => {
  const { database, clock, random } = needs
  const { principal } = caller
  const { tenantId } = principal
  const manages = principal.scopes.includes('vault:manage')
  const unknown = manages ? UNKNOWN : ({ tag: 'not_owner' } as const)
  const name = readName(by, value)
  if (!isUuid(credentialId) || name === undefined) return unknown
  const found = await inTenant(database, tenantId, context, (tx) =>
    findVaultCredential(tx, tenantId, credentialId),
  )
  if (found === undefined || !(manages || owns(principal, found))) return unknown
  if (found.credentialType !== 'ssh_ca') return UNKNOWN
  const line =
    by === 'public_key' ? await needs.compute.run('publicLine', { line: name }, context) : null
  if (line?.tag === 'bad_key') return BAD_KEY
  if (line !== null) await authorityRow(needs, tenantId, credentialId, context)
  return inTenant(
    database,
    tenantId,
    context,
    async (tx): Promise<CertificateRevoked | SshInvalid | SshUnknown> => {
      const now = clock.now()
      const named = line?.line ?? name
      const isNew =
        line !== null && (await revokeSshKey(tx, tenantId, credentialId, named, REVOKED_KEYS_MAX))
      if (line !== null && !isNew) {
        const { revokedKeys = [] } = (await findSshAuthority(tx, tenantId, credentialId)) ?? {}
        if (!revokedKeys.includes(named)) return FULL
      }
      const revoked = await revokeCertificates(tx, tenantId, credentialId, [by, named], now)
      if (line === null && revoked.length === 0) return UNKNOWN
      if (isNew || revoked.some(({ first }) => first)) {
        recordAudit(tx, { clock, random }, caller, context, {
          type: 'vault.certificate.revoked',
          resource: { type: 'vault_credential', id: credentialId },
          data: {
            [by]: named,
            ...(by === 'serial' ? {} : { serials: revoked.map(({ serial }) => serial) }),
          },
        })
      }
      return {
        tag: 'certificate_revoked',
        serial: by === 'serial' ? named : null,
        serials: revoked.map(({ serial }) => serial),
        revokedAt: revoked[0]?.revokedAt ?? now,
      }
    },
  )
}

const BAD_KEY = invalid(
  '/public_key',
  'Must be an OpenSSH public key of type ssh-ed25519 or ecdsa-sha2-nistp256.',
)
const FULL = invalid('/public_key', `The list has ${REVOKED_KEYS_MAX} keys, which is its limit.`)

export const getSshRevocationList: SshHandler<'getSshRevocationList'> = async (
  needs,
  { tenantId, credentialId },
  context,
) => {
  const files = isUuid(credentialId)
    ? await trustOf(needs, tenantId, credentialId, context)
    : undefined
  return files === undefined ? UNKNOWN : { tag: 'list', krl: files.krl }
}

/** What a process remembers: tenants of authorities, and signatures by the digest of what is signed. */
export type SshMemory = {
  readonly tenants: Map<string, string>
  readonly signatures: Map<string, string>
  /** Reads of hosts, by authority. */
  readonly reads: ReturnType<typeof joined<PublicTrust | undefined>>
  polls: number
}

export const sshMemory = (): SshMemory => ({
  tenants: new Map(),
  signatures: new Map(),
  reads: joined(),
  polls: 0,
})

type Waits = Pick<MessageContext, 'signal'>

type PublicTrust = Trust & { readonly tenantId: string }

/** Without a place, a host polls again later. */
async function withPlace<T>(memory: SshMemory, work: () => Promise<T>): Promise<T | SshBusy> {
  if (memory.polls >= POLLS_MAX) return { tag: 'busy' }
  memory.polls += 1
  return work().finally(() => (memory.polls -= 1))
}

export const pollSshRevocationList =
  (memory: SshMemory): SshHandler<'pollSshRevocationList'> =>
  (needs, { credentialId }) =>
    withPlace(memory, async () => {
      const trust = await publicTrust(needs, memory, credentialId)
      return trust === undefined ? UNKNOWN : ({ tag: 'file', body: trust.krl } as const)
    })

export const getSshTrustFile =
  (memory: SshMemory): SshHandler<'getSshTrustFile'> =>
  (needs, { credentialId, file }, context) =>
    withPlace(memory, async () => {
      const trust = await publicTrust(needs, memory, credentialId)
      if (trust === undefined) return UNKNOWN
      if (file === 'ca.pub') return { tag: 'file', body: trust.caKeys }
      if (file === 'allowed_signers') return { tag: 'file', body: trust.signers }
      const [message, namespace] = SIGNED[file](trust)
      const of = { credentialId, message, namespace }
      return { tag: 'file', body: await signatureOf(needs, memory, trust, of, context) }
    })

async function signatureOf(
  { sealer, compute }: SshCertificatesNeeds,
  { signatures }: SshMemory,
  { authority, tenantId }: PublicTrust,
  of: {
    readonly credentialId: string
    readonly message: Uint8Array
    readonly namespace: string
  },
  context: MessageContext,
): Promise<Uint8Array> {
  const { credentialId, message, namespace } = of
  const key = `${credentialId} ${namespace} ${sha256(message)}`
  const known = signatures.get(key)
  if (known !== undefined) return Buffer.from(known)
  const { listPublicKey: caPublicKey, listPrivateSealed } = authority
  const pkcs8 = await sealer.open(tenantId, listKeyContext(credentialId), listPrivateSealed)
  const signature = await compute
    .run('signature', { authority: { pkcs8, caPublicKey }, namespace, message }, context)
    .finally(() => pkcs8.fill(0))
  kept(signatures, key, signature)
  return Buffer.from(signature)
}

/** By the public address, which names no tenant. */
function publicTrust(
  needs: SshCertificatesNeeds,
  memory: SshMemory,
  credentialId: string,
): Promise<PublicTrust | undefined> {
  if (!isUuid(credentialId)) return Promise.resolve(undefined)
  // A host that leaves ends no read that others share.
  const { signal } = new AbortController()
  return memory.reads(credentialId, () => readTrust(needs, memory, credentialId, { signal }))
}

async function readTrust(
  needs: SshCertificatesNeeds,
  { tenants }: SshMemory,
  credentialId: string,
  context: Waits,
): Promise<PublicTrust | undefined> {
  const tenantId =
    tenants.get(credentialId) ??
    (await needs.database.system((tx) => tenantOfAuthority(tx, credentialId), context))
  if (tenantId === undefined) return undefined
  kept(tenants, credentialId, tenantId)
  const trust = await trustOf(needs, tenantId, credentialId, context)
  return trust && { ...trust, tenantId }
}

/** Namespaces of signatures (OpenSSH PROTOCOL.sshsig). */
const KRL_NAMESPACE = 'svc-krl'
const CA_NAMESPACE = 'svc-ca'
const SIGNED: Readonly<
  Record<Extract<TrustFile, `${string}.sig`>, (trust: Trust) => [Uint8Array, string]>
> = {
  'krl.sig': ({ krl }) => [krl, KRL_NAMESPACE],
  'ca.pub.sig': ({ caKeys }) => [caKeys, CA_NAMESPACE],
}

function kept(memory: Map<string, string>, key: string, value: string): void {
  memory.set(key, value)
  if (memory.size > KEPT_MAX) memory.delete(memory.keys().next().value!)
}

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('base64url')

type Trust = {
  readonly authority: SshAuthorityRow
  readonly krl: Uint8Array
  readonly caKeys: Uint8Array
  readonly signers: Uint8Array
}

/** The present files of an authority. */
async function trustOf(
  needs: SshCertificatesNeeds,
  tenantId: string,
  credentialId: string,
  context: Waits,
): Promise<Trust | undefined> {
  const { database, clock } = needs
  const authority = await authorityRow(needs, tenantId, credentialId, context)
  if (authority === undefined) return undefined
  return inTenant(database, tenantId, context, async (tx) => {
    const now = clock.now()
    const [row, serves, revoked, signing] = await Promise.all([
      findVaultCredential(tx, tenantId, credentialId),
      servesHosts(tx, tenantId),
      listRevokedCertificates(tx, tenantId, credentialId, now),
      listCertifyingKeys(tx, tenantId, credentialId, now),
    ])
    if (row === undefined || row.caPublicKey === null) return undefined
    const trusted = [...new Set([row.caPublicKey, ...signing])]
    const ended = row.status === 'revoked' || !serves
    const list = {
      comment: `svc:${tenantId}:${row.id}`,
      serials: grouped(revoked),
      keys: [...authority.revokedKeys, ...(ended ? trusted : [])],
    }
    const digest = sha256(encodeKrl({ ...list, version: 0n, generatedSecs: 0 }))
    const version =
      digest === authority.listDigest
        ? authority.listVersion
        : await keepListVersion(tx, tenantId, credentialId, digest, now)
    const generatedSecs = Math.floor(Number(version) / 1000)
    return {
      authority,
      krl: new Uint8Array(encodeKrl({ ...list, version: BigInt(version), generatedSecs })),
      caKeys: Buffer.from(trusted.map((line) => `${line}\n`).join('')),
      signers: Buffer.from(
        `svc namespaces="${KRL_NAMESPACE},${CA_NAMESPACE}" ${authority.listPublicKey}\n`,
      ),
    }
  })
}

/** The row of an authority, made with its first use. */
async function authorityRow(
  { database, sealer, compute, clock }: SshCertificatesNeeds,
  tenantId: string,
  credentialId: string,
  context: Waits,
): Promise<SshAuthorityRow | undefined> {
  const find = () =>
    inTenant(database, tenantId, context, (tx) => findSshAuthority(tx, tenantId, credentialId))
  const found = await find()
  if (found !== undefined) return found
  const made = await compute.run('authority', { privateKey: null }, context)
  if (made.tag === 'refused') return undefined
  const { pkcs8, caPublicKey: listPublicKey } = made
  const listPrivateSealed = await sealer
    .seal(tenantId, listKeyContext(credentialId), pkcs8)
    .finally(() => pkcs8.fill(0))
  await inTenant(database, tenantId, context, async (tx) => {
    const row = await findVaultCredential(tx, tenantId, credentialId)
    if (row?.credentialType !== 'ssh_ca') return
    const createdAt = clock.now()
    await insertSshAuthority(tx, {
      tenantId,
      credentialId,
      listPublicKey,
      listPrivateSealed,
      createdAt,
    })
  })
  return find()
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
