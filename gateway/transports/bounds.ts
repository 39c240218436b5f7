/**
 * Bounds of unanswered requests and unread answers, for all transports: per connection, per address, and in all
 * (docs/concepts/gateway.md). A client that sends requests and reads no answers cannot fill the memory.
 */
import { isIP } from 'node:net'
import { quotaAddress } from '../../actors/domain/quota-address.js'
import { isShared } from '../response/shared-body.js'

/** Requests of a connection that are worked on at the same time. */
export const IN_PROGRESS_MAX = 16
/** Unsent bytes of a connection, besides a single answer that is being written. No further request starts above it. */
export const UNSENT_BYTES_MAX = 1024 * 1024
/** Received requests of a connection that wait for their turn: as many of usual length as one read of 64 KiB has. */
const WAITING_MAX = 1_600
/** What a received request that waits is counted as. */
const WAITING_REQUEST_BYTES = 8 * 1024
export const ADDRESS_BYTES_MAX = 16 * 1024 * 1024
export const ALL_BYTES_MAX = 64 * 1024 * 1024

/** The bytes of a body that are held until it is sent. Documents are held anyway. */
export function heldBytesOf(body: string | Uint8Array | null): number {
  if (body === null || (typeof body !== 'string' && isShared(body))) return 0
  return Buffer.byteLength(body)
}

/** Which bound a connection was closed for. */
type Bound = 'connection' | 'address' | 'process'

type AddressAccount = { bytes: number; readonly holders: Set<Holder> }

/** What all connections of a gateway thread hold. */
export class ConnectionBounds {
  inProgress = 0
  unsentBytes = 0
  readonly closed: Record<Bound, number> = { connection: 0, address: 0, process: 0 }
  private readonly holders = new Set<Holder>()
  private readonly addresses = new Map<string, AddressAccount>()
  private readonly isShared: (address: string) => boolean

  /** @param isShared true for addresses of many clients, such as proxies. They have no bound per address. */
  constructor(isShared: (address: string) => boolean = () => false) {
    this.isShared = isShared
  }

  /** Counts what a connection holds. The largest holder is closed where a bound is exceeded. */
  add(holder: Holder, bytes: number): void {
    this.unsentBytes += bytes
    this.holders.add(holder)
    const account = this.accountOf(holder)
    if (account !== null) {
      account.bytes += bytes
      account.holders.add(holder)
      if (account.bytes > ADDRESS_BYTES_MAX) closeLargest(account.holders, 'address')
    }
    if (this.unsentBytes > ALL_BYTES_MAX) closeLargest(this.holders, 'process')
  }

  remove(holder: Holder, bytes: number): void {
    this.unsentBytes -= bytes
    const isEmpty = holder.heldBytes === 0
    if (isEmpty) this.holders.delete(holder)
    const account = this.addresses.get(holder.network)
    if (account === undefined) return
    account.bytes -= bytes
    if (isEmpty) account.holders.delete(holder)
    if (account.holders.size === 0) this.addresses.delete(holder.network)
  }

  private accountOf({ address, network }: Holder): AddressAccount | null {
    const known = this.addresses.get(network)
    if (known !== undefined) return known
    if (isIP(address) === 0 || isLoopback(address) || this.isShared(address)) return null
    const account: AddressAccount = { bytes: 0, holders: new Set() }
    this.addresses.set(network, account)
    return account
  }
}

function closeLargest(holders: ReadonlySet<Holder>, bound: Bound): void {
  let largest: Holder | null = null
  for (const holder of holders) {
    if (largest === null || holder.heldBytes > largest.heldBytes) largest = holder
  }
  largest?.cut(bound)
}

function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.')
}

/** The bytes that are held for one connection. */
export class Holder {
  readonly address: string
  heldBytes = 0
  /** The connection has closed. */
  isEnded = false
  protected readonly bounds: ConnectionBounds
  private readonly close: () => void
  private knownNetwork: string | null = null

  /** @param close closes the connection immediately. */
  constructor(bounds: ConnectionBounds, address: string, close: () => void) {
    this.bounds = bounds
    this.address = address
    this.close = close
  }

  /** The address, or the /64 network of an IPv6 address. */
  get network(): string {
    return (this.knownNetwork ??= quotaAddress(this.address))
  }

  /** Counts bytes until they are released, or the connection ends. */
  hold(bytes: number): void {
    if (this.isEnded || bytes === 0) return
    this.heldBytes += bytes
    this.bounds.add(this, bytes)
  }

  release(bytes: number): void {
    if (this.isEnded || bytes === 0) return
    this.heldBytes -= bytes
    this.bounds.remove(this, bytes)
  }

  /** Closes the connection because a bound is exceeded. */
  cut(bound: Bound): void {
    if (this.isEnded) return
    this.bounds.closed[bound] += 1
    this.end()
    this.close()
  }

  /** The connection has closed. */
  end(): void {
    if (this.isEnded) return
    this.isEnded = true
    const bytes = this.heldBytes
    this.heldBytes = 0
    if (bytes > 0) this.bounds.remove(this, bytes)
  }
}

type Reservation = { readonly bytes: number; readonly grant: () => void }

type Waiting = { readonly isSafe: boolean; readonly start: () => void }

/** The requests of one connection: which are worked on, and which wait. */
export class Turns extends Holder {
  /** Called when no received request waits any more. */
  onEmpty: (() => void) | null = null
  private inProgress = 0
  private unsentAnswers = 0
  private unsentBytes = 0
  /** Expected bytes of answers that are being made. */
  private reservedBytes = 0
  private reservations: Reservation[] = []
  /** A request that may act is worked on alone (RFC 9112 section 9.3.2). */
  private isAlone = false
  private queue: Waiting[] = []
  private isDue = false

  /** Received requests that wait for their turn. */
  get waiting(): number {
    return this.queue.length
  }

  /**
   * Starts a request now or in its turn. Call `finish` after each start.
   * @param isSafe it may be processed while others are.
   * @returns false if it waits.
   */
  begin(isSafe: boolean, start: () => void): boolean {
    if (this.isEnded) return false
    if (this.queue.length === 0 && this.hasRoom(isSafe)) {
      this.start(isSafe)
      start()
      return true
    }
    this.queue.push({ isSafe, start })
    this.hold(WAITING_REQUEST_BYTES)
    if (this.queue.length > WAITING_MAX) this.cut('connection')
    return false
  }

  /** @param reservedBytes the bytes reserved for its answer. */
  finish(reservedBytes = 0): void {
    this.inProgress -= 1
    this.bounds.inProgress -= 1
    if (this.inProgress === 0) this.isAlone = false
    this.unreserve(reservedBytes)
    this.proceed()
  }

  /** Reserves room for an answer before it is made. Waits while unread answers leave no room. */
  reserve(bytes: number): true | Promise<void> {
    if (this.reservations.length === 0 && this.fits(bytes)) {
      this.reservedBytes += bytes
      return true
    }
    return new Promise((grant) => this.reservations.push({ bytes, grant }))
  }

  unreserve(bytes: number): void {
    this.reservedBytes -= bytes
    while (this.reservations.length > 0 && this.fits(this.reservations[0]!.bytes)) {
      const { bytes: next, grant } = this.reservations.shift()!
      this.reservedBytes += next
      grant()
    }
  }

  /** Counts an answer that is not read yet. */
  holdAnswer(bytes: number): void {
    this.unsentAnswers += 1
    this.unsentBytes += bytes
    this.hold(bytes)
  }

  releaseAnswer(bytes: number): void {
    this.unsentAnswers -= 1
    this.unsentBytes -= bytes
    this.release(bytes)
    this.unreserve(0)
    this.proceed()
  }

  /** The connection has closed: what waits is never started. */
  override end(): void {
    this.queue = []
    this.reservations = []
    super.end()
  }

  /** One answer that is being written and one that is being made always fit, whatever their lengths. */
  private fits(bytes: number): boolean {
    if (this.reservedBytes === 0 && this.unsentAnswers <= 1) return true
    return this.unsentBytes + this.reservedBytes + bytes <= UNSENT_BYTES_MAX
  }

  private hasRoom(isSafe: boolean): boolean {
    if (this.unsentAnswers > 1 && this.unsentBytes > UNSENT_BYTES_MAX) return false
    if (this.inProgress === 0) return true
    return isSafe && !this.isAlone && this.inProgress < IN_PROGRESS_MAX
  }

  private start(isSafe: boolean): void {
    this.inProgress += 1
    this.bounds.inProgress += 1
    this.isAlone = !isSafe
  }

  /** In the next turn of the event loop, so that other connections are served in between. */
  private proceed(): void {
    if (this.isDue || this.queue.length === 0) return
    this.isDue = true
    setImmediate(() => {
      this.isDue = false
      while (this.queue.length > 0 && this.hasRoom(this.queue[0]!.isSafe)) {
        const { isSafe, start } = this.queue.shift()!
        this.release(WAITING_REQUEST_BYTES)
        this.start(isSafe)
        start()
      }
      if (this.queue.length === 0 && !this.isEnded) this.onEmpty?.()
    })
  }
}
