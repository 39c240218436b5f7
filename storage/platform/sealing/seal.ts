/**
 * Envelope encryption of columns. Each tenant has a data key, wrapped by the kms; what it seals is
 * bound to the tenant and to the words that name row and column.
 *
 *     format 1 | data key version 4 | nonce 12 | ciphertext | tag 16
 *
 * Seal before opening a transaction: the first use of a tenant's key reads or makes it in a
 * transaction of its own and asks the kms, and nobody should hold a connection meanwhile.
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
  rewrapDataKey,
} from './data-keys.js'
import { insertRotation } from './data-key-rotations.js'
import { type Kms, KmsUnavailable } from '../kms/kms.js'
import { masterKeyIdOf } from '../kms/master-keys.js'
import type { Sealer } from './sealer.js'
import type { Database } from '../sql.js'

const FORMAT = 1
const HEADER_BYTES = 5
const NONCE_BYTES = 12
const TAG_BYTES = 16
const DATA_KEY_BYTES = 32
/** What the table's integer holds. */
const VERSION_MAX = 2 ** 31 - 1
/** How long an unwrapped key stays in memory, used or not. */
const KEY_LIFETIME_MS = 60 * 60_000
/** How soon a rotation by another process is noticed by those who seal. */
export const NEWEST_LIFETIME_MS = 60_000
const KEYS_MAX = 4_096
const REWRAP_BATCH = 100

/** Owner of what belongs to the service and to no tenant: the nil UUID (RFC 9562 section 5.9). */
export const SYSTEM_TENANT_ID = '00000000-0000-0000-0000-000000000000'

/** A sealed value that does not open: moved, changed, of another tenant, or its key is gone. */
export class SealBroken extends Error {
  override readonly name = 'SealBroken'
}

export interface TenantSealer extends Sealer {
  /**
   * Makes a new data key for a tenant. It seals from now on; the older ones stay, to open. What
   * they have sealed is sealed anew in the background (reseal.ts).
   */
  rotate(tenantId: string): Promise<number>
  /** Looks for the newest key of a tenant at the next use. */
  forgetNewest(tenantId: string): void
  /**
   * Wraps every data key under the newest master key, so that older master keys can be put away.
   * @returns how many were wrapped anew.
   */
  rewrap(): Promise<number>
}

export type SealerNeeds = {
  readonly database: Database
  readonly kms: Kms
  readonly random: Random
  readonly clock: Clock
}

export function createSealer(needs: SealerNeeds): TenantSealer {
  const keys = new DataKeys(needs)
  return {
    async seal(tenantId, context, plaintext) {
      const { version, key } = await keys.newest(tenantId)
      const header = Buffer.alloc(HEADER_BYTES)
      header.writeUInt8(FORMAT)
      header.writeUInt32BE(version, 1)
      const nonce = needs.random.bytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, nonce)
      cipher.setAAD(associated(header, tenantId, context))
      const body = cipher.update(plaintext)
      cipher.final()
      return new Uint8Array(Buffer.concat([header, nonce, body, cipher.getAuthTag()]))
    },
    async open(tenantId, context, sealed) {
      if (sealed.length < HEADER_BYTES + NONCE_BYTES + TAG_BYTES || sealed[0] !== FORMAT) {
        throw new SealBroken('this is not a sealed value')
      }
      const header = Buffer.from(sealed.buffer, sealed.byteOffset, HEADER_BYTES)
      const version = header.readUInt32BE(1)
      if (version > VERSION_MAX) throw new SealBroken('the tenant has no such data key')
      const key = keys.known(tenantId, version) ?? (await keys.version(tenantId, version))
      const nonceEnd = HEADER_BYTES + NONCE_BYTES
      const decipher = createDecipheriv(
        'aes-256-gcm',
        key,
        sealed.subarray(HEADER_BYTES, nonceEnd),
        { authTagLength: TAG_BYTES },
      )
      decipher.setAAD(associated(header, tenantId, context))
      decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES))
      const plaintext = decipher.update(sealed.subarray(nonceEnd, sealed.length - TAG_BYTES))
      try {
        decipher.final()
      } catch {
        throw new SealBroken(`the sealed value of ${context} does not open`)
      }
      // The bytes themselves, no copy: whoever wipes them leaves none behind.
      return new Uint8Array(plaintext.buffer, plaintext.byteOffset, plaintext.byteLength)
    },
    rotate: (tenantId) => keys.rotate(tenantId),
    forgetNewest: (tenantId) => keys.forgetNewest(tenantId),
    rewrap: () => rewrap(needs),
  }
}

type Versioned = { readonly version: number; readonly key: KeyObject }

/** Data keys in memory: bounded in number and in age, each loaded once however many ask. */
class DataKeys {
  readonly #needs: SealerNeeds
  readonly #keys: Aging<KeyObject>
  readonly #newest: Aging<Versioned>

  constructor(needs: SealerNeeds) {
    this.#needs = needs
    this.#keys = new Aging(needs.clock, KEY_LIFETIME_MS)
    this.#newest = new Aging(needs.clock, NEWEST_LIFETIME_MS)
  }

  newest(tenantId: string): Promise<Versioned> {
    return this.#newest.get(tenantId, async () => {
      const row = await this.#read(tenantId)
      return this.#open(row ?? (await this.#make(tenantId, 1)))
    })
  }

  /** The key, if it is in memory. */
  known(tenantId: string, version: number): KeyObject | undefined {
    return this.#keys.peek(`${tenantId}/${version}`)
  }

  async version(tenantId: string, version: number): Promise<KeyObject> {
    return this.#keys.get(`${tenantId}/${version}`, async () => {
      const row = await this.#needs.database.tenant(tenantId, (tx) =>
        findDataKey(tx, tenantId, version),
      )
      if (row === undefined) throw new SealBroken('the tenant has no such data key')
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

  async #open(row: DataKeyRow): Promise<Versioned> {
    const key = await this.#keys.get(`${row.tenantId}/${row.version}`, () => this.#unwrap(row))
    return { version: row.version, key }
  }

  #read(tenantId: string): Promise<DataKeyRow | undefined> {
    return this.#needs.database.tenant(tenantId, (tx) => findNewestDataKey(tx, tenantId))
  }

  /** Of two who make the same version, one inserts; both then use what the table holds. */
  async #make(tenantId: string, version: number): Promise<DataKeyRow> {
    const { database, kms, random, clock } = this.#needs
    const plaintext = random.bytes(DATA_KEY_BYTES)
    const wrapped = await kms.wrap(wrapContext(tenantId, version), plaintext)
    plaintext.fill(0)
    const masterKeyId = requireMasterKeyId(wrapped)
    const row = { tenantId, version, wrapped, masterKeyId, createdAt: clock.now() }
    return database.tenant(tenantId, async (tx) => {
      if (await insertDataKey(tx, row)) {
        // The first key replaces none.
        if (version > 1) await insertRotation(tx, { tenantId, version, startedAt: row.createdAt })
        return row
      }
      const theirs = await findDataKey(tx, tenantId, version)
      if (theirs === undefined) throw new Error('a data key vanished')
      return theirs
    })
  }

  async #unwrap({ tenantId, version, wrapped }: DataKeyRow): Promise<KeyObject> {
    const plaintext = await this.#needs.kms.unwrap(wrapContext(tenantId, version), wrapped)
    const key = createSecretKey(plaintext)
    plaintext.fill(0)
    return key
  }
}

/** A bounded map whose entries age; the least recently used goes first. */
class Aging<Value> {
  readonly #clock: Clock
  readonly #lifetimeMs: number
  readonly #entries = new Map<string, { value: Value; untilMs: number }>()
  readonly #loading = new Map<string, Promise<Value>>()

  constructor(clock: Clock, lifetimeMs: number) {
    this.#clock = clock
    this.#lifetimeMs = lifetimeMs
  }

  /** What is there and young enough; it is then the most recently used. */
  peek(name: string): Value | undefined {
    const entry = this.#entries.get(name)
    if (entry === undefined) return undefined
    this.#entries.delete(name)
    if (this.#clock.monotonicMs() >= entry.untilMs) return undefined
    this.#entries.set(name, entry)
    return entry.value
  }

  async get(name: string, load: () => Promise<Value>): Promise<Value> {
    const known = this.peek(name)
    if (known !== undefined) return known
    const loading = this.#loading.get(name) ?? this.#load(name, load)
    return loading
  }

  forget(name: string): void {
    this.#entries.delete(name)
    this.#loading.delete(name)
  }

  #load(name: string, load: () => Promise<Value>): Promise<Value> {
    const loading = load().then(
      (value) => {
        // Forgotten meanwhile: what was loaded may be out of date, so it is used but not kept.
        if (this.#loading.get(name) === loading) this.#keep(name, value)
        return value
      },
      (error) => {
        if (this.#loading.get(name) === loading) this.#loading.delete(name)
        throw error
      },
    )
    this.#loading.set(name, loading)
    return loading
  }

  #keep(name: string, value: Value): void {
    this.#loading.delete(name)
    this.#entries.set(name, { value, untilMs: this.#clock.monotonicMs() + this.#lifetimeMs })
    if (this.#entries.size <= KEYS_MAX) return
    const [oldest] = this.#entries.keys()
    if (oldest !== undefined) this.#entries.delete(oldest)
  }
}

/** Crosses tenants: every data key there is gets a new wrapping, none is opened to be used. */
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
      // A master key newer than the one just named is as good, and must not make this loop forever.
      if (masterKeyId !== current) throw new Error('the master key changed meanwhile: try again')
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
  if (id === undefined) throw new Error('the kms gave something that is not a wrapped key')
  return id
}

/** No tenant id holds a zero byte, so two pairs of tenant and context never read the same. */
function associated(header: Buffer, tenantId: string, context: string): Buffer {
  const words = `${tenantId.toLowerCase()}\0${context}`
  const bytes = Buffer.allocUnsafe(header.length + Buffer.byteLength(words))
  bytes.set(header)
  bytes.write(words, header.length)
  return bytes
}
