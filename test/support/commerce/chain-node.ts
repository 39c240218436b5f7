/** The node of a chain as a service sees it: a test changes what it answers. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Asked = { readonly id: unknown; readonly method: string; readonly params: unknown[] }
/** @returns what is answered in place of the result. Undefined: the result. */
export type Mischief = (asked: Asked, result: unknown) => unknown

/** A result in place of which another text is answered. */
export class RawAnswer {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export async function openNode(rpcUrl: string) {
  let mischief: Mischief | undefined
  let lies = 0
  let heads = 0
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const call = JSON.parse(body.toString()) as Asked
    if (call.method === 'eth_blockNumber') heads += 1
    const honest = await fetch(rpcUrl, { method: 'POST', body })
    const answer = (await honest.json()) as { result?: unknown }
    const changed = 'result' in answer ? mischief?.(call, answer.result) : undefined
    if (changed !== undefined) lies += 1
    response.setHeader('content-type', 'application/json')
    if (changed instanceof RawAnswer) return void response.end(changed.text)
    response.end(JSON.stringify(changed === undefined ? answer : { ...answer, result: changed }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** How often the latest block was asked for. */
    heads: () => heads,
    /** Answers that were changed. */
    lies: () => lies,
    misbehave(next: Mischief | undefined) {
      mischief = next
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
