/** Bodies of other parties' answers, held whole: never more of them than the reader can use. */
import type { Readable } from 'node:stream'

/**
 * Reads a body to its end; undefined when it is larger, and then the connection is given up.
 * @throws whatever the connection ends with.
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

/** Gives up a body that nobody wants to read. */
export function discard(body: Readable): void {
  body.on('error', () => undefined).destroy()
}
