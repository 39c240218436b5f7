/** A process of its own that relays 256 MiB down and up and reports its memory as one JSON object. */
import { createHash } from 'node:crypto'
import { createDialer } from '../../../../actors/platform/outbound-http/dialer.js'
import { createUpstreams } from '../../../../actors/platform/outbound-http/upstreams.js'
import { ByteStream } from '../../../../runtime/kernel/stream.js'
import { run as runOn } from './running.js'

export type MemoryReport = {
  readonly baseMib: number
  readonly peakMib: number
  readonly down: { readonly bytes: number; readonly sha256: string; readonly outcome: string }
  readonly up: { readonly bytes: number; readonly answer: string; readonly outcome: string }
}

const [origin = '', size = ''] = process.argv.slice(2)
const bytes = Number(size)
const dialer = createDialer({
  privateNetworks: true,
  dnsOverrides: {},
  http2: true,
  sharedReads: true,
})
const upstreams = createUpstreams(dialer, undefined, { http2: true })
const limits = { idleGapMs: 60_000, hopTimeoutMs: 240_000 }
const mib = () => process.memoryUsage.rss() / 2 ** 20

async function run(method: string, path: string, body: ByteStream | null) {
  const { signal } = new AbortController()
  const job = {
    method,
    path,
    headers: [],
    body,
    bodyBytes: null,
    limits,
    signal,
    byteBudget: null,
    redactor: null,
  }
  const running = runOn(upstreams.of(origin), job)
  const start = await running.started
  if (start.tag === 'failed') throw new Error(JSON.stringify(start.report))
  const hash = createHash('sha256')
  let text = ''
  for await (const chunk of start.body) {
    hash.update(chunk)
    if (chunk.byteLength < 1024) text += Buffer.from(chunk).toString()
  }
  return { report: await running.ended, sha256: hash.digest('hex'), text }
}

function* produce(): Generator<Uint8Array, void, void> {
  const chunk = Buffer.alloc(64 * 1024, 'svc ')
  for (let left = bytes; left > 0; left -= chunk.length) yield new Uint8Array(chunk)
}

// A first small run, so that code and pools are not taken for growth.
await run('GET', '/bytes/1048576', null)
const baseMib = mib()
let peakMib = baseMib
const watch = setInterval(() => {
  peakMib = Math.max(peakMib, mib())
}, 5)
const down = await run('GET', `/bytes/${bytes}`, null)
const up = await run('POST', '/hash', ByteStream.from(produce()))
clearInterval(watch)
await upstreams.close()

const report: MemoryReport = {
  baseMib,
  peakMib,
  down: {
    bytes: down.report.responseBytes,
    sha256: down.sha256,
    outcome: down.report.outcome,
  },
  up: { bytes: up.report.requestBytes, answer: up.text, outcome: up.report.outcome },
}
process.stdout.write(JSON.stringify(report))
