/** Reads response bodies into memory, up to a limit. */
import type { Readable } from 'node:stream'

/**
 * Reads a whole body; undefined when it exceeds the limit, which closes the connection.
 * @throws the error of the connection.
 */
export async function readBody(body: Readable, bytesMax: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > bytesMax) {
      discard(body)
      return undefined
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Closes the connection of an unread body. */
export function discard(body: Readable): void {
  body.on('error', () => undefined).destroy()
}
