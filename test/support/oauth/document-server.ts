/** A host of client metadata documents: HTTPS on loopback, with a certificate that only tests trust (REACHES_LOOPBACK). */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { LOOPBACK } from '../fleet/loopback.js'
import { helperEnds } from '../endings.js'

export type Served =
  | {
      readonly body: string | Buffer
      readonly status?: number
      readonly headers?: Readonly<Record<string, string>>
    }
  | ((request: IncomingMessage, response: ServerResponse) => void)

export interface DocumentServer {
  readonly origin: string
  /** The paths of the requests, in order. */
  readonly asked: string[]
  serve(path: string, served: Served): string
  /** Serves client metadata. @returns its URL. */
  client(more?: Readonly<Record<string, unknown>>, path?: string): string
  close(): Promise<void>
}

export const CLIENT_CALLBACK = 'https://client.example/callback'

export async function documentServer(): Promise<DocumentServer> {
  const served = new Map<string, Served>()
  const asked: string[] = []
  const key = readFileSync(LOOPBACK.keyPath)
  const server = createServer({ key, cert: LOOPBACK.pem }, (request, response) => {
    const path = request.url ?? ''
    asked.push(path)
    const found = served.get(path)
    if (found === undefined) return response.writeHead(404).end()
    if (typeof found === 'function') return found(request, response)
    const headers = { 'content-type': 'application/json', ...found.headers }
    return response.writeHead(found.status ?? 200, headers).end(found.body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `https://localhost:${(server.address() as AddressInfo).port}`
  let count = 0
  const serve = (path: string, what: Served) => {
    served.set(path, what)
    return origin + path
  }
  return {
    origin,
    asked,
    serve,
    client(more = {}, path = `/client-${(count += 1)}.json`) {
      const document = {
        client_id: origin + path,
        client_name: 'Wanderer',
        redirect_uris: [CLIENT_CALLBACK],
        grant_types: ['authorization_code', 'refresh_token'],
        token_endpoint_auth_method: 'none',
        ...more,
      }
      return serve(path, { body: JSON.stringify(document) })
    },
    close: helperEnds(async () => {
      server.closeAllConnections()
      server.close()
    }),
  }
}
