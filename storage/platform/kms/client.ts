/**
 * The client of the kms. It connects at the first request, multiplexes requests over one connection, and fails fast:
 * no request waits longer than the time limit, stalls of this process apart, and while the kms is unavailable most
 * requests fail immediately.
 */
import { connect, type Socket } from 'node:net'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Logger } from '../../../runtime/kernel/log.js'
import { ResponseLimit } from '../response-limit.js'
import {
  CONTEXT_BYTES_MAX,
  decodeReply,
  encodeRequest,
  FrameReader,
  frame,
  type KmsReply,
  type Operation,
  PAYLOAD_BYTES_MAX,
} from './frames.js'
import { readKeyFile } from './key-files.js'
import { type Kms, KmsRefused, KmsUnavailable } from './kms.js'
import { WRAP_OVERHEAD_BYTES } from './master-keys.js'
import { type Channel, initiate, type KeyPair, keyPairOf } from './noise.js'

const REQUEST_TIMEOUT_MS = 2_000
const INFLIGHT_MAX = 256
const BACKOFF_FIRST_MS = 50
const BACKOFF_MAX_MS = 1_000
const REQUEST_ID_MAX = 0xffff_ffff

export type OpenKms = {
  readonly socketPath: string
  readonly serverPublicKeyPath: string
  readonly clientPrivateKeyPath: string
  readonly log: Logger
  readonly clock: Clock
  readonly registry?: Registry | undefined
  /** Default 2,000. */
  readonly requestTimeoutMs?: number | undefined
}

/**
 * Reads the keys. Does not connect yet.
 * @throws {KeyFileRefused} if a key file is missing, malformed, or accessible to other users.
 */
export async function openKms(options: OpenKms): Promise<Kms> {
  const serverKey = await readKeyFile('public', options.serverPublicKeyPath)
  const own = keyPairOf(await readKeyFile('private', options.clientPrivateKeyPath))
  const client = new KmsClient(options, own, serverKey)
  return {
    async wrap(context, plaintext) {
      requireFits(context, plaintext, PAYLOAD_BYTES_MAX)
      return client.request('wrap', context, plaintext)
    },
    async unwrap(context, wrapped) {
      requireFits(context, wrapped, PAYLOAD_BYTES_MAX + WRAP_OVERHEAD_BYTES)
      return client.request('unwrap', context, wrapped)
    },
    async health() {
      try {
        const ids = await client.request('status', '', new Uint8Array())
        const masterKeyIds = Buffer.from(ids).toString().split('\n')
        return { state: 'up', masterKeyIds }
      } catch (error) {
        return { state: 'down', reason: error instanceof Error ? error.message : String(error) }
      }
    },
    close: async () => client.close(),
  }
}

type Waiting = {
  readonly resolve: (payload: Uint8Array) => void
  readonly reject: (error: Error) => void
  readonly limit: ResponseLimit
}

/** A connection after its handshake. */
type Link = { readonly socket: Socket; readonly channel: Channel }

class KmsClient {
  readonly #options: OpenKms
  readonly #own: KeyPair
  readonly #serverKey: Uint8Array
  readonly #metrics: KmsMetrics | undefined
  readonly #timeoutMs: number
  readonly #waiting = new Map<number, Waiting>()
  #link: Link | undefined
  #linking: Promise<Link> | undefined
  #dialling: Socket | undefined
  #failures = 0
  #retryAtMs = 0
  #lastFailure = ''
  #lastId = 0
  #inflight = 0
  #isClosed = false

  constructor(options: OpenKms, own: KeyPair, serverKey: Uint8Array) {
    this.#options = options
    this.#own = own
    this.#serverKey = serverKey
    this.#timeoutMs = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS
    this.#metrics = options.registry && kmsMetrics(options.registry)
  }

  async request(operation: Operation, context: string, payload: Uint8Array): Promise<Uint8Array> {
    const startMs = this.#options.clock.monotonicMs()
    let outcome = 'unavailable'
    try {
      if (this.#inflight >= INFLIGHT_MAX)
        throw new KmsUnavailable('too many concurrent kms requests')
      this.#inflight += 1
      try {
        const link = this.#link ?? (await this.#connect())
        const answer = await this.#send(link, operation, context, payload)
        outcome = 'ok'
        return answer
      } finally {
        this.#inflight -= 1
      }
    } catch (error) {
      if (error instanceof KmsRefused) outcome = error.reason
      throw error
    } finally {
      const seconds = (this.#options.clock.monotonicMs() - startMs) / 1000
      this.#metrics?.requests.inc({ operation, outcome })
      this.#metrics?.seconds.observe({ operation }, seconds)
    }
  }

  close(): void {
    this.#isClosed = true
    this.#dialling?.destroy()
    this.#drop(this.#link, 'the kms client is closed')
  }

  #send(link: Link, operation: Operation, context: string, payload: Uint8Array) {
    return new Promise<Uint8Array>((resolve, reject) => {
      if (link !== this.#link) throw new KmsUnavailable('the kms connection was lost')
      const id = this.#nextId()
      // The kms answers in order, so later requests are late too. A new connection shows whether the kms is available.
      const late = () => this.#drop(link, `no response from the kms within ${this.#timeoutMs} ms`)
      const limit = new ResponseLimit(this.#timeoutMs, late)
      this.#waiting.set(id, { resolve, reject, limit })
      try {
        const request = encodeRequest({ id, operation, context, payload })
        link.socket.write(frame(link.channel.seal(request)))
      } catch (error) {
        // The channel has reached its message limit. The next request opens a new one.
        this.#drop(link, error instanceof Error ? error.message : String(error))
      }
    })
  }

  #nextId(): number {
    do this.#lastId = this.#lastId === REQUEST_ID_MAX ? 1 : this.#lastId + 1
    while (this.#waiting.has(this.#lastId))
    return this.#lastId
  }

  /** Requests without a connection share one connection attempt. */
  async #connect(): Promise<Link> {
    if (this.#isClosed) throw new KmsUnavailable('the kms client is closed')
    if (this.#linking !== undefined) return this.#linking
    if (this.#options.clock.monotonicMs() < this.#retryAtMs) {
      throw new KmsUnavailable(this.#lastFailure)
    }
    this.#linking = this.#attempt()
    return this.#linking
  }

  /** One attempt. All who wait for it get the same error. */
  async #attempt(): Promise<Link> {
    try {
      const link = await this.#dial()
      this.#failures = 0
      this.#options.log.info({ socketPath: this.#options.socketPath }, 'kms connected')
      return link
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      this.#lastFailure = `the kms at ${this.#options.socketPath} is unavailable: ${message}`
      const backoffMs = Math.min(BACKOFF_FIRST_MS * 2 ** this.#failures, BACKOFF_MAX_MS)
      if (this.#failures === 0) this.#options.log.warn({ reason: message }, 'kms unreachable')
      this.#failures += 1
      this.#retryAtMs = this.#options.clock.monotonicMs() + backoffMs
      throw new KmsUnavailable(this.#lastFailure)
    } finally {
      this.#linking = undefined
    }
  }

  /** Connects and runs the handshake, which authenticates the kms by its pinned key. */
  #dial(): Promise<Link> {
    return new Promise((resolve, reject) => {
      const socket = connect(this.#options.socketPath)
      this.#dialling = socket
      const initiator = initiate(this.#own, this.#serverKey)
      const frames = new FrameReader()
      let link: Link | undefined
      const fail = (error: Error) => {
        limit.end()
        socket.destroy()
        reject(error)
        this.#drop(link, error.message)
      }
      const late = () => fail(new Error('the handshake timed out'))
      const limit = new ResponseLimit(this.#timeoutMs, late)
      socket.on('connect', () => socket.write(frame(initiator.hello)))
      socket.on('error', fail)
      socket.on('close', () => fail(new Error('the kms closed the connection')))
      socket.on('data', (chunk) => {
        try {
          for (const message of frames.push(chunk)) {
            if (link !== undefined) {
              this.#settle(decodeReply(link.channel.open(message)))
              continue
            }
            link = { socket, channel: initiator.finish(message) }
            limit.end()
            this.#dialling = undefined
            this.#link = link
            this.#metrics?.connected.set(1)
            resolve(link)
          }
        } catch (error) {
          fail(error instanceof Error ? error : new Error(String(error)))
        }
      })
    })
  }

  #settle({ id, status, payload }: KmsReply): void {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) return
    this.#waiting.delete(id)
    waiting.limit.end()
    if (status === 'ok') waiting.resolve(new Uint8Array(payload))
    else waiting.reject(new KmsRefused(status))
  }

  /** Closes a connection and fails its pending requests. */
  #drop(link: Link | undefined, reason: string): void {
    if (link === undefined || link !== this.#link) return
    this.#link = undefined
    this.#metrics?.connected.set(0)
    if (!this.#isClosed) this.#options.log.warn({ reason }, 'kms connection lost')
    link.socket.destroy()
    for (const { reject, limit } of this.#waiting.values()) {
      limit.end()
      reject(new KmsUnavailable(reason))
    }
    this.#waiting.clear()
  }
}

function requireFits(context: string, payload: Uint8Array, payloadBytesMax: number): void {
  if (Buffer.byteLength(context) > CONTEXT_BYTES_MAX) {
    throw new RangeError(`a kms context has at most ${CONTEXT_BYTES_MAX} bytes`)
  }
  if (payload.length > payloadBytesMax) {
    throw new RangeError(`a kms payload has at most ${payloadBytesMax} bytes`)
  }
}

type KmsMetrics = {
  readonly requests: Counter<'operation' | 'outcome'>
  readonly seconds: Histogram<'operation'>
  readonly connected: Gauge
}

function kmsMetrics(registry: Registry): KmsMetrics {
  const registers = [registry]
  return {
    requests: new Counter({
      name: 'svc_kms_requests_total',
      help: 'Requests to the kms by outcome.',
      labelNames: ['operation', 'outcome'],
      registers,
    }),
    seconds: new Histogram({
      name: 'svc_kms_request_seconds',
      help: 'Time until the kms answered or was given up.',
      labelNames: ['operation'],
      buckets: [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2],
      registers,
    }),
    connected: new Gauge({
      name: 'svc_kms_connected',
      help: '1 while an authenticated kms connection is open, on every gateway thread.',
      aggregator: 'min',
      registers,
    }),
  }
}
