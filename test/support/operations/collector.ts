/** A collector of traces on loopback: OTLP over HTTP with JSON, as the OpenTelemetry protocol specifies it. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface CollectedSpan {
  readonly traceId: string
  readonly spanId: string
  /** Undefined for the first span of a trace. */
  readonly parentSpanId: string | undefined
  readonly name: string
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Readonly<Record<string, unknown>>
  readonly resource: Readonly<Record<string, unknown>>
  /** 2 is an error. */
  readonly status: number
}

export interface Collector {
  readonly endpoint: string
  readonly spans: readonly CollectedSpan[]
  /** Headers of the exports. */
  readonly headers: readonly IncomingHttpHeaders[]
  close(): Promise<void>
}

type Value = { readonly [kind: string]: unknown }
type Pairs = readonly { readonly key: string; readonly value: Value }[]
type Sent = {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: Pairs }
    readonly scopeSpans: readonly { readonly spans: readonly Readonly<Record<string, unknown>>[] }[]
  }[]
}

const ofPairs = (pairs: Pairs = []) =>
  Object.fromEntries(pairs.map(({ key, value }) => [key, Object.values(value)[0]]))
const msOf = (nanos: unknown) => Number(BigInt(String(nanos)) / 1_000_000n)

export async function startCollector(): Promise<Collector> {
  const spans: CollectedSpan[] = []
  const headers: IncomingHttpHeaders[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const isTraces = request.method === 'POST' && request.url === '/v1/traces'
      if (!isTraces || request.headers['content-type'] !== 'application/json')
        return void response.writeHead(400).end()
      headers.push(request.headers)
      const { resourceSpans } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Sent
      for (const { resource, scopeSpans } of resourceSpans) {
        for (const span of scopeSpans.flatMap((scope) => scope.spans)) {
          spans.push({
            traceId: String(span['traceId']),
            spanId: String(span['spanId']),
            parentSpanId: span['parentSpanId'] as string | undefined,
            name: String(span['name']),
            kind: Number(span['kind']),
            startMs: msOf(span['startTimeUnixNano']),
            endMs: msOf(span['endTimeUnixNano']),
            attributes: ofPairs(span['attributes'] as Pairs),
            resource: ofPairs(resource.attributes),
            status: Number((span['status'] as { code?: number } | undefined)?.code ?? 0),
          })
        }
      }
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    endpoint: `http://127.0.0.1:${port}`,
    spans,
    headers,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
