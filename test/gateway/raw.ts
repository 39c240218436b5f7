/** Sends raw bytes to a socket, for requests that clients cannot send. */
import { connect, type Socket } from 'node:net'

export type RawReply = {
  readonly text: string
  /** True if the server closed the connection. */
  readonly closed: boolean
  /** Milliseconds until then, or until the time limit. */
  readonly afterMs: number
}

/**
 * Sends the parts with pauses of `gapMs`. Reads until the server closes, the heads of `answers` answers have arrived, or
 * `withinMs` have passed.
 */
export function sendRaw(
  port: number,
  parts: string | readonly string[],
  { withinMs = 1_000, gapMs = 30, answers = Number.POSITIVE_INFINITY } = {},
): Promise<RawReply> {
  const started = Date.now()
  return new Promise((resolve) => {
    const socket: Socket = connect(port, '127.0.0.1')
    let text = ''
    let over = false
    const finish = (closed: boolean) => {
      if (over) return
      over = true
      clearTimeout(timer)
      socket.destroy()
      resolve({ text, closed, afterMs: Date.now() - started })
    }
    const timer = setTimeout(() => finish(false), withinMs)
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      const heads = text.match(/HTTP\/1\.1 \d{3} [^]*?\r\n\r\n/g)?.length ?? 0
      if (heads >= answers) finish(false)
    })
    socket.on('error', () => finish(true))
    socket.on('close', () => finish(true))
    socket.on('end', () => finish(true))
    const list = typeof parts === 'string' ? [parts] : parts
    socket.on('connect', async () => {
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
