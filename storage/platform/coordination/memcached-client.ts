/**
 * A client of the part of memcached's meta protocol (doc/protocol.txt of memcached 1.6) that coordination needs. npm
 * packages use the classic protocol, which cannot return the remaining lifetime of a counter or delete a lock only
 * for its holder.
 */
import { connect, type Socket } from 'node:net'

export interface MemcachedOptions {
  /** host:port, an IPv6 host in brackets, or the path of a unix socket. */
  readonly address: string
  readonly poolSize: number
  /** Idle connections that are kept. */
  readonly maxIdle: number
  readonly connectTimeoutMs: number
  readonly commandTimeoutMs: number
}

export interface Reply {
  /** HD, VA, EN, NF, NS, EX. */
  readonly status: string
  /** Return flags: `t` for the remaining lifetime, `c` for the version. */
  readonly flags: ReadonlyMap<string, string>
  readonly value: Buffer | undefined
}

const CRLF = '\r\n'
const ANSWERS = new Set(['HD', 'VA', 'EN', 'NF', 'NS', 'EX'])

/** memcached responded with an error. */
export class MemcachedRefusal extends Error {
  override readonly name = 'MemcachedRefusal'
}

/** A pool of connections, each with one command at a time. */
export class MemcachedClient {
  readonly #options: MemcachedOptions
  readonly #idle: Line[] = []
  readonly #lines = new Set<Line>()
  readonly #waiting: ((line: Line | undefined) => void)[] = []
  #opening = 0
  #closed = false
  /** Number of resets. A command that waited during a reset fails. */
  #epoch = 0

  constructor(options: MemcachedOptions) {
    this.#options = options
  }

  /** @param value the data block after the command line. */
  async ask(command: string, value?: Uint8Array): Promise<Reply> {
    const line = await this.#take()
    try {
      const reply = await line.ask(command, value, this.#options.commandTimeoutMs)
      this.#giveBack(line)
      return reply
    } catch (error) {
      this.#drop(line)
      throw error
    }
  }

  /** Closes all connections. Pending commands fail. Later ones connect again. */
  reset(): void {
    this.#epoch += 1
    for (const line of this.#lines) line.end()
    for (const wake of this.#waiting.splice(0)) wake(undefined)
  }

  close(): void {
    this.#closed = true
    this.reset()
  }

  async #take(): Promise<Line> {
    const epoch = this.#epoch
    for (;;) {
      if (this.#closed) throw new Error('the client is closed')
      if (epoch !== this.#epoch) throw new Error('the connections to memcached were reset')
      const idle = this.#idle.pop()
      if (idle?.open) return idle
      if (idle) {
        this.#lines.delete(idle)
        continue
      }
      if (this.#lines.size + this.#opening < this.#options.poolSize) return this.#open()
      const handed = await new Promise<Line | undefined>((resolve) => this.#waiting.push(resolve))
      if (handed) return handed
    }
  }

  async #open(): Promise<Line> {
    this.#opening += 1
    try {
      const line = await Line.connect(this.#options)
      this.#lines.add(line)
      return line
    } catch (error) {
      this.#waiting.shift()?.(undefined)
      throw error
    } finally {
      this.#opening -= 1
    }
  }

  #giveBack(line: Line): void {
    const next = this.#waiting.shift()
    if (next) next(line)
    else if (this.#closed || this.#idle.length >= this.#options.maxIdle) this.#drop(line)
    else this.#idle.push(line)
  }

  #drop(line: Line): void {
    line.end()
    this.#lines.delete(line)
    // A waiting command may open a connection now.
    this.#waiting.shift()?.(undefined)
  }
}

/** One connection. */
class Line {
  readonly #socket: Socket
  #received: Buffer = Buffer.alloc(0)
  #settle: { resolve(reply: Reply): void; reject(error: Error): void } | undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    socket.on('error', (error) => this.#fail(error))
    socket.on('close', () => this.#fail(new Error('memcached closed the connection')))
  }

  static connect({ address, connectTimeoutMs }: MemcachedOptions): Promise<Line> {
    return new Promise((resolve, reject) => {
      const socket = address.startsWith('/') ? connect(address) : connect(hostAndPort(address))
      socket.setNoDelay(true)
      const timer = setTimeout(
        () => socket.destroy(new Error('the connection to memcached timed out')),
        connectTimeoutMs,
      )
      const fail = (error: Error) => {
        clearTimeout(timer)
        reject(error)
      }
      socket.once('error', fail)
      socket.once('connect', () => {
        clearTimeout(timer)
        socket.off('error', fail)
        resolve(new Line(socket))
      })
    })
  }

  get open(): boolean {
    return !this.#socket.destroyed && this.#socket.writable
  }

  ask(command: string, value: Uint8Array | undefined, timeoutMs: number): Promise<Reply> {
    return new Promise<Reply>((resolve, reject) => {
      const timer = setTimeout(
        () => this.#socket.destroy(new Error('memcached did not respond in time')),
        timeoutMs,
      )
      this.#settle = {
        resolve: (reply) => {
          clearTimeout(timer)
          resolve(reply)
        },
        reject: (error) => {
          clearTimeout(timer)
          reject(error)
        },
      }
      this.#socket.write(
        value === undefined
          ? command + CRLF
          : Buffer.concat([Buffer.from(command + CRLF), value, Buffer.from(CRLF)]),
      )
    })
  }

  end(): void {
    this.#socket.destroy()
  }

  #receive(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    const lineEnd = this.#received.indexOf(CRLF)
    if (lineEnd < 0) return
    const [status = '', ...words] = this.#received.toString('latin1', 0, lineEnd).split(' ')
    if (!ANSWERS.has(status)) {
      const text = this.#received.toString('latin1', 0, lineEnd)
      this.#socket.destroy(new MemcachedRefusal(`memcached answered ${text}`))
      return
    }
    let value: Buffer | undefined
    let end = lineEnd + CRLF.length
    if (status === 'VA') {
      const from = end
      const size = Number(words.shift())
      end = from + size + CRLF.length
      if (this.#received.length < end) return
      value = Buffer.from(this.#received.subarray(from, from + size))
    }
    this.#received = this.#received.subarray(end)
    const settle = this.#settle
    this.#settle = undefined
    settle?.resolve({
      status,
      value,
      flags: new Map(words.map((word) => [word.slice(0, 1), word.slice(1)])),
    })
  }

  #fail(error: Error): void {
    const settle = this.#settle
    this.#settle = undefined
    settle?.reject(error)
  }
}

function hostAndPort(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon).replace(/^\[(.*)\]$/, '$1')
  return { host, port: Number(address.slice(colon + 1)) }
}
