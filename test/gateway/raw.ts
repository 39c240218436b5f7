/** Sends raw bytes to a socket, for requests that clients cannot send. */
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** For the connection, which a busy machine takes its time for. */
const CONNECT_WITHIN_MS = 20_000

export type RawReply = {
  readonly text: string
  /** True if the server closed the connection. */
  readonly closed: boolean
}

/** Where raw bytes go: a port without TLS, or a stage, whose transport decides. */
export type RawTarget =
  | number
  | {
      readonly port: number
      readonly transport?: string
      readonly certificate?: { readonly pem: string } | null
    }

/** The certificate of a target that speaks HTTP/1.1 over TLS. */
function certificateOf(target: RawTarget): string | undefined {
  if (typeof target === 'number' || target.transport === 'http2') return undefined
  return target.certificate?.pem
}

/** An HTTP/1.1 connection to the target, through TLS where its transport has it. */
export function connectRaw(target: RawTarget): Socket {
  const port = typeof target === 'number' ? target : target.port
  const ca = certificateOf(target)
  if (ca === undefined) return connect(port, '127.0.0.1')
  const server = { port, host: '127.0.0.1', servername: 'localhost' }
  return connectTls({ ...server, ca, ALPNProtocols: ['http/1.1'] })
}

/** The event after which the connection takes bytes. */
export function readyEvent(target: RawTarget): 'connect' | 'secureConnect' {
  return certificateOf(target) === undefined ? 'connect' : 'secureConnect'
}

/** A connection that gets an answer gets its end with it, also on a busy machine. */
const QUIET_MS = 1_000
const SILENT_MS = 5_000

type RawLimits = {
  readonly withinMs?: number
  readonly gapMs?: number
  readonly answers?: number
}

/**
 * Sends the parts with pauses of `gapMs`. Reads until the server closes, the heads of `answers` answers have arrived, or
 * `withinMs` have passed. Default: a second after the last byte, or `SILENT_MS` without one.
 */
export function sendRaw(
  target: RawTarget,
  parts: string | readonly string[],
  { withinMs, gapMs = 30, answers = Number.POSITIVE_INFINITY }: RawLimits = {},
): Promise<RawReply> {
  return new Promise((resolve) => {
    const socket = connectRaw(target)
    let text = ''
    let over = false
    const finish = (closed: boolean) => {
      if (over) return
      over = true
      clearTimeout(timer)
      socket.destroy()
      resolve({ text, closed })
    }
    let timer = setTimeout(() => finish(false), CONNECT_WITHIN_MS)
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      if (withinMs === undefined) {
        clearTimeout(timer)
        timer = setTimeout(() => finish(false), QUIET_MS)
      }
      const heads = text.match(/HTTP\/1\.1 \d{3} [^]*?\r\n\r\n/g)?.length ?? 0
      if (heads >= answers) finish(false)
    })
    socket.on('error', () => finish(true))
    socket.on('close', () => finish(true))
    socket.on('end', () => finish(true))
    const list = typeof parts === 'string' ? [parts] : parts
    socket.on(readyEvent(target), async () => {
      clearTimeout(timer)
      timer = setTimeout(() => finish(false), withinMs ?? SILENT_MS)
      for (const [index, part] of list.entries()) {
        if (index > 0) await new Promise((wake) => setTimeout(wake, gapMs))
        if (over || socket.destroyed) return
        socket.write(Buffer.from(part, 'latin1'))
      }
    })
  })
}

/** Status codes of the answers in a reply, in order. */
export function statuses({ text }: RawReply): number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
}
