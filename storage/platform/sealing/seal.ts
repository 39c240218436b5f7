/**
 * Envelope encryption of columns. Each tenant has a data key that the kms wraps. A sealed value is bound to the tenant
 * and to a context that names row and column.
 *
 *     format 1 | data key version 4 | nonce 12 | ciphertext | tag 16
 *
 * Seal before you open a transaction: the first use of a tenant's key needs a separate transaction and a call of the
 * kms, and should not happen while a connection is held.
 */
import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject } from 'node:crypto'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  type DataKeyRow,
  findDataKey,
  findNewestDataKey,
  insertDataKey,
  listDataKeysNotUnder,
  type NewestDataKeyRow,
  rewrapDataKey,
} from './data-keys.js'
import { insertRotation } from './data-key-rotations.js'
import { ExpiringLru } from './expiring-lru.js'
import { type Kms, KmsUnavailable } from '../kms/kms.js'
import { masterKeyIdOf } from '../kms/master-keys.js'
import type { SealContext, Sealer } from './sealer.js'
import { partsOf, STAMP_BYTES, withStamp } from './stamps.js'
import type { Database } from '../sql.js'

const FORMAT = 1
const HEADER_BYTES = 5
const NONCE_BYTES = 12
const TAG_BYTES = 16
const DATA_KEY_BYTES = 32
/** Maximum of the integer column. */
const VERSION_MAX = 2 ** 31 - 1
/**
 * Time after a rotation in which values open that it does not seal again: none of them is in use for longer than a day
 * (sealed-columns.ts).
 */
const REPLACED_MS = 48 * 60 * 60_000
/** Lifetime of an unwrapped key in memory. For this time a process works without its kms. */
export const KEY_LIFETIME_MS = 60 * 60_000
/** Time within which a process notices a rotation by another process. */
export const NEWEST_LIFETIME_MS = 60_000
const REWRAP_BATCH = 100

/** Owner of values without a tenant: the nil UUID (RFC 9562 section 5.9). */
export const SYSTEM_TENANT_ID = '00000000-0000-0000-0000-000000000000'

/** A sealed value that cannot be opened: it was moved or changed, or its key is missing. */
export class SealBroken extends Error {
  override readonly name = 'SealBroken'
}

export interface TenantSealer extends Sealer {
  /**
   * Creates a new data key for a tenant, which seals from now on. Older keys are kept for opening. Their values are
   * sealed again in the background (reseal.ts). Two days after that the older keys open nothing any more.
   */
  rotate(tenantId: string): Promise<number>
  /** Makes the next use look up the newest key of the tenant. */
  forgetNewest(tenantId: string): void
  /**
   * Wraps all data keys under the newest master key, so that older master keys can be removed.
   * @returns the number of keys that were wrapped again.
   */
  rewrap(): Promise<number>
}

type SealerNeeds = {
  readonly database: Database
  readonly kms: Kms
  readonly random: Random
  readonly clock: Clock
}

export function createSealer(needs: SealerNeeds): TenantSealer {
  const keys = new DataKeys(needs)
  return {
    async seal(tenantId, context, plaintext) {
      const { version, key, stamps } = await keys.newest(tenantId)
      const stamp = stamps && typeof context !== 'string' ? needs.random.bytes(STAMP_BYTES) : null
      const bodyAt = HEADER_BYTES + NONCE_BYTES
      const tagAt = bodyAt + plaintext.length
      const sealed = new Uint8Array(tagAt + TAG_BYTES)
      sealed[0] = FORMAT
      new DataView(sealed.buffer).setUint32(1, version)
      const nonce = needs.random.bytes(NONCE_BYTES)
      sealed.set(nonce, HEADER_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, nonce)
      cipher.setAAD(associated(sealed, tenantId, context, stamp))
      // GCM adds no padding: all of the ciphertext comes from `update`.
      sealed.set(cipher.update(plaintext), bodyAt)
      cipher.final()
      sealed.set(cipher.getAuthTag(), tagAt)
      return stamp === null ? sealed : withStamp(stamp, sealed)
    },
    async open(tenantId, context, value) {
      const { sealed, stamp } =
        typeof context === 'string' ? { sealed: value, stamp: null } : partsOf(value)
      if (sealed.length < HEADER_BYTES + NONCE_BYTES + TAG_BYTES || sealed[0] !== FORMAT) {
        throw new SealBroken('the value is not sealed')
      }
      const version = versionOf(sealed)
      if (version > VERSION_MAX) throw new SealBroken('the tenant has no such data key')
      const key = keys.known(tenantId, version) ?? (await keys.version(tenantId, version))
      const bodyAt = HEADER_BYTES + NONCE_BYTES
      const tagAt = sealed.length - TAG_BYTES
      const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(HEADER_BYTES, bodyAt))
      decipher.setAAD(associated(sealed, tenantId, context, stamp))
      // Always of the full length, so the cipher accepts no shorter tag.
      decipher.setAuthTag(sealed.subarray(tagAt))
      const plaintext = decipher.update(sealed.subarray(bodyAt, tagAt))
      try {
        decipher.final()
      } catch {
        throw new SealBroken(`cannot open the sealed value of ${nameOf(context)}`)
      }
      // No copy, so that the caller can wipe the bytes.
      return new Uint8Array(plaintext.buffer, plaintext.byteOffset, plaintext.byteLength)
    },
    rotate: (tenantId) => keys.rotate(tenantId),
    forgetNewest: (tenantId) => keys.forgetNewest(tenantId),
    rewrap: () => rewrap(needs),
  }
}

type Versioned = {
  readonly version: number
  readonly key: KeyObject
  /** Values may have stamps: every process opens them. */
  readonly stamps: boolean
}

/** Cache of data keys, bounded in number and age. Concurrent look-ups of a key share one load. */
class DataKeys {
  readonly #needs: SealerNeeds
  readonly #keys: ExpiringLru<KeyObject>
  readonly #newest: ExpiringLru<Versioned>

  constructor(needs: SealerNeeds) {
    this.#needs = needs
    this.#keys = new ExpiringLru(needs.clock, KEY_LIFETIME_MS)
    this.#newest = new ExpiringLru(needs.clock, NEWEST_LIFETIME_MS)
  }

  newest(tenantId: string): Promise<Versioned> {
    return this.#newest.get(tenantId, async () => {
      const known = await this.#read(tenantId)
      if (known === undefined) await this.#make(tenantId, 1)
      const row = known ?? (await this.#read(tenantId))
      if (row === undefined) throw new Error('a data key is missing')
      const key = await this.#keys.get(`${tenantId}/${row.version}`, () => this.#unwrap(row))
      return { version: row.version, key, stamps: row.stamps }
    })
  }

  /** The key, if it is cached. */
  known(tenantId: string, version: number): KeyObject | undefined {
    return this.#keys.peek(`${tenantId}/${version}`)
  }

  async version(tenantId: string, version: number): Promise<KeyObject> {
    return this.#keys.get(`${tenantId}/${version}`, async () => {
      const row = await this.#needs.database.tenant(tenantId, (tx) =>
        findDataKey(tx, tenantId, version, this.#replacedBefore()),
      )
      if (row === undefined)
        throw new SealBroken('the tenant has no such data key, or has replaced it')
      return this.#unwrap(row)
    })
  }

  async rotate(tenantId: string): Promise<number> {
    const row = await this.#read(tenantId)
    const { version } = await this.#make(tenantId, (row?.version ?? 0) + 1)
    this.forgetNewest(tenantId)
    return version
  }

  forgetNewest(tenantId: string): void {
    this.#newest.forget(tenantId)
  }

  #read(tenantId: string): Promise<NewestDataKeyRow | undefined> {
    return this.#needs.database.tenant(tenantId, (tx) => findNewestDataKey(tx, tenantId))
  }

  /** If two processes create the same version, one insert wins and both use the stored key. */
  async #make(tenantId: string, version: number): Promise<DataKeyRow> {
    const { database, kms, random, clock } = this.#needs
    const plaintext = random.bytes(DATA_KEY_BYTES)
    const wrapped = await kms.wrap(wrapContext(tenantId, version), plaintext)
    plaintext.fill(0)
    const masterKeyId = requireMasterKeyId(wrapped)
    const row = { tenantId, version, wrapped, masterKeyId, createdAt: clock.now() }
    return database.tenant(tenantId, async (tx) => {
      if (await insertDataKey(tx, row)) {
        // The first key replaces no other.
        if (version > 1) await insertRotation(tx, { tenantId, version, startedAt: row.createdAt })
        return row
      }
      const theirs = await findDataKey(tx, tenantId, version, this.#replacedBefore())
      if (theirs === undefined) throw new Error('a data key is missing')
      return theirs
    })
  }

  #replacedBefore(): Date {
    return new Date(this.#needs.clock.now().getTime() - REPLACED_MS)
  }

  async #unwrap({ tenantId, version, wrapped }: DataKeyRow): Promise<KeyObject> {
    const plaintext = await this.#needs.kms.unwrap(wrapContext(tenantId, version), wrapped)
    const key = createSecretKey(plaintext)
    plaintext.fill(0)
    return key
  }
}

/** Wraps all data keys again. Crosses tenants. */
async function rewrap({ database, kms }: SealerNeeds): Promise<number> {
  const health = await kms.health()
  if (health.state === 'down') throw new KmsUnavailable(health.reason)
  const current = health.masterKeyIds.at(-1) ?? ''
  let count = 0
  for (;;) {
    const rows = await database.system((tx) => listDataKeysNotUnder(tx, current, REWRAP_BATCH))
    if (rows.length === 0) return count
    for (const row of rows) {
      const context = wrapContext(row.tenantId, row.version)
      const plaintext = await kms.unwrap(context, row.wrapped)
      const wrapped = await kms.wrap(context, plaintext)
      plaintext.fill(0)
      const masterKeyId = requireMasterKeyId(wrapped)
      // Stop if the master key has changed again, otherwise this could loop forever.
      if (masterKeyId !== current)
        throw new Error('the master key changed during the operation: try again')
      const renewed = { ...row, wrapped, masterKeyId }
      await database.system((tx) => rewrapDataKey(tx, renewed, row.masterKeyId))
      count += 1
    }
  }
}

function wrapContext(tenantId: string, version: number): string {
  return `data_key:${tenantId}:${version}`
}

function requireMasterKeyId(wrapped: Uint8Array): string {
  const id = masterKeyIdOf(wrapped)
  if (id === undefined) throw new Error('the kms returned an invalid wrapped key')
  return id
}

/** The version of the data key in the header of a sealed value. */
function versionOf(sealed: Uint8Array): number {
  return ((sealed[1]! << 24) | (sealed[2]! << 16) | (sealed[3]! << 8) | sealed[4]!) >>> 0
}

const nameOf = (context: SealContext) => (typeof context === 'string' ? context : context.rewritten)

/**
 * The header at the beginning of `sealed`, tenant, context and stamp. Tenant ids and contexts contain no zero byte, so
 * different triples have different bytes.
 */
function associated(
  sealed: Uint8Array,
  tenantId: string,
  context: SealContext,
  stamp: Uint8Array | null,
): Buffer {
  const mark = stamp === null ? '' : `\0${Buffer.from(stamp).toString('hex')}`
  const words = `${tenantId.toLowerCase()}\0${nameOf(context)}${mark}`
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + Buffer.byteLength(words))
  for (let index = 0; index < HEADER_BYTES; index += 1) bytes[index] = sealed[index]!
  bytes.write(words, HEADER_BYTES)
  return bytes
}
