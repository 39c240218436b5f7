import { execFile } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import test, { type ExecutionContext } from 'ava'
import { createDialer } from '../../../../actors/platform/outbound-http/dialer.js'
import type { HeaderPair, RelayLimits } from '../../../../actors/vault/egress/protocol.js'
import { ByteBudget } from '../../../../actors/vault/egress/admission/byte-budget.js'
import { createUpstreams } from '../../../../actors/platform/outbound-http/upstreams.js'
import { bytePipe, ByteStream } from '../../../../runtime/kernel/stream.js'
import type { MemoryReport } from './memory-probe.js'
import { getting, run as runOn, type Running, type SignalledJob } from './running.js'
import { digestOf, startUpstream } from './upstream.js'

const MIB = 2 ** 20
const STREAM_BYTES = 256 * MIB
const LIMITS: RelayLimits = { idleGapMs: 30_000, hopTimeoutMs: 60_000 }

async function setUp(t: ExecutionContext, origin?: string) {
  const upstream = await startUpstream()
  const dialer = createDialer({
    privateNetworks: true,
    dnsOverrides: {},
    http2: true,
    sharedReads: true,
  })
  const upstreams = createUpstreams(dialer, undefined, { http2: true })
  t.teardown(async () => {
    await upstreams.destroy()
    await upstream.close()
  })
  const run = (path: string, changed: Partial<SignalledJob> = {}) =>
    runOn(upstreams.of(origin ?? upstream.origin), { ...getting(path), limits: LIMITS, ...changed })
  return { upstream, run, upstreams }
}

async function textOf(body: ByteStream): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

async function started(running: Running) {
  const start = await running.started
  if (start.tag === 'failed') throw new Error(JSON.stringify(start.report))
  return start
}

/** Waits until a count is stable. @returns the count. */
async function settled(count: () => number): Promise<number> {
  let before = -1
  let still = 0
  while (still < 6) {
    const now = count()
    still = now === before ? still + 1 : 0
    before = now
    await delay(50)
  }
  return before
}

test('256 MiB pass unchanged in each direction through constant memory', async (t) => {
  const { upstream } = await setUp(t)
  const script = fileURLToPath(new URL('./memory-probe.js', import.meta.url))
  const argv = [script, upstream.origin, String(STREAM_BYTES)]
  const { stdout } = await promisify(execFile)(process.execPath, argv)
  const report = JSON.parse(stdout) as MemoryReport
  t.log(report)
  t.deepEqual(report.down, {
    bytes: STREAM_BYTES,
    sha256: digestOf(STREAM_BYTES),
    outcome: 'completed',
  })
  t.is(report.up.bytes, STREAM_BYTES)
  t.is((JSON.parse(report.up.answer) as { sha256: string }).sha256, digestOf(STREAM_BYTES))
  t.true(report.peakMib - report.baseMib < 96, 'memory stays constant, a fifth of what passed')
})

test('a paused reader pauses the upstream, and resumes it', async (t) => {
  const { upstream, run } = await setUp(t)
  const running = run(`/bytes/${STREAM_BYTES}`)
  const { body } = await started(running)
  const unread = await settled(() => upstream.pushed)
  t.log({ pushedUnreadMib: unread / MIB })
  // The window is 256 KiB; the socket buffers hold the rest.
  t.true(unread < 16 * MIB)
  let read = 0
  while (read < 32 * MIB) read += (await body.read())!.byteLength
  const later = await settled(() => upstream.pushed)
  t.log({ pushedLaterMib: later / MIB })
  t.true(later >= read && later < read + 16 * MIB)
  body.cancel()
  t.is((await running.ended).outcome, 'client_closed')
})

test('an upstream that pauses reading pauses the client', async (t) => {
  const { run } = await setUp(t)
  let produced = 0
  async function* produce(): AsyncGenerator<Uint8Array, void, void> {
    while (produced < STREAM_BYTES) {
      produced += 64 * 1024
      yield new Uint8Array(64 * 1024)
    }
  }
  const controller = new AbortController()
  const body = ByteStream.from(produce())
  const running = run('/silent', { method: 'POST', body, signal: controller.signal })
  const taken = await settled(() => produced)
  t.log({ producedMib: taken / MIB })
  t.true(taken < 16 * MIB)
  controller.abort()
  t.is((await running.ended).outcome, 'client_closed')
})

test('a body of known length has Content-Length, any other is chunked', async (t) => {
  const { upstream, run } = await setUp(t)
  const bytes = new Uint8Array(Buffer.from('hello'))
  for (const bodyBytes of [5, null]) {
    const running = run('/echo', { method: 'PUT', body: ByteStream.from(bytes), bodyBytes })
    const { body } = await started(running)
    t.is(await textOf(body), 'hello')
    const { headers } = upstream.requests.at(-1)!
    t.is(headers['content-length'], bodyBytes === null ? undefined : '5')
    t.is(headers['transfer-encoding'], bodyBytes === null ? 'chunked' : undefined)
    t.like(await running.ended, {
      outcome: 'completed',
      requestBytes: 5,
      responseBytes: 5,
      bytes: 10,
    })
  }
})

test('only the allowed response fields are relayed', async (t) => {
  const { run } = await setUp(t)
  const { headers, body } = await started(run('/headers'))
  await textOf(body)
  t.deepEqual(headers.toSorted(), [
    ['link', '<a>'],
    ['link', '<b>'],
    ['x-ratelimit-remaining', '7'],
    ['x-svc-upstream-request-id', 'theirs'],
  ] as HeaderPair[])
})

test('a redirect is relayed, not followed', async (t) => {
  const { upstream, run } = await setUp(t)
  const start = await started(run('/redirect'))
  t.is(start.status, 302)
  t.deepEqual(
    start.headers.find(([name]) => name === 'location'),
    ['location', '/elsewhere'],
  )
  await textOf(start.body)
  t.is(upstream.requests.length, 1)
})

test('interim responses are not the response', async (t) => {
  const { run } = await setUp(t)
  const start = await started(run('/hints'))
  t.is(start.status, 200)
  t.is(await textOf(start.body), 'after hints')
})

test('a HEAD request and its response without body complete', async (t) => {
  const { run } = await setUp(t)
  const running = run('/headers', { method: 'HEAD' })
  const { body } = await started(running)
  t.is(await textOf(body), '')
  t.like(await running.ended, { outcome: 'completed', bytes: 0 })
})

for (const [habit, phase, proxyError] of [
  ['reset-before-headers', 'before headers', 'connection_terminated'],
  ['not-http', 'before headers', 'http_protocol_error'],
  ['huge-headers', 'before headers', 'http_response_header_section_size'],
  ['reset-after-headers', 'after headers', 'http_response_incomplete'],
  ['reset-in-body', 'after headers', 'http_response_incomplete'],
  ['short-body', 'after headers', 'http_response_incomplete'],
] as const) {
  test(`an upstream that fails ${phase} by ${habit} is an upstream error`, async (t) => {
    const { run } = await setUp(t)
    const running = run(`/${habit}`)
    const start = await running.started
    if (phase === 'before headers') {
      t.is(start.tag, 'failed')
    } else if (start.tag === 'relaying') {
      await t.throwsAsync(textOf(start.body), { name: 'StreamAborted', message: /upstream_error/ })
    } else t.fail('an answer had begun')
    t.like(await running.ended, { outcome: 'upstream_error', proxyError })
  })
}

test('a refused connection is an upstream error', async (t) => {
  // A port that was just closed may be reused by another test; this one is never in use.
  const { run } = await setUp(t, 'http://127.0.0.1:1')
  t.like(await run('/bytes/1').ended, {
    outcome: 'upstream_error',
    proxyError: 'connection_refused',
  })
})

for (const path of ['/silent', '/silent-after-headers', '/silent-after-chunk']) {
  test(`a gap on ${path} ends the relay as idle and closes the connection`, async (t) => {
    const { upstream, run } = await setUp(t)
    const running = run(path, { limits: { ...LIMITS, idleGapMs: 1_500 } })
    const start = await running.started
    t.is(start.tag, path === '/silent' ? 'failed' : 'relaying')
    t.is((await running.ended).outcome, 'idle_timeout')
    if (start.tag === 'relaying') await t.throwsAsync(textOf(start.body), { message: /idle/ })
    await upstream.disconnected
  })
}

for (const path of ['/silent', '/interim']) {
  test(`no head on ${path} ends the relay in its time for one`, async (t) => {
    const { upstream, run } = await setUp(t)
    const late = run(path, { limits: { ...LIMITS, headTimeoutMs: 500 } })
    t.like(await late.ended, { outcome: 'hop_timeout', proxyError: 'http_response_timeout' })
    await upstream.disconnected
  })
}

test('interim responses are no progress', async (t) => {
  const { upstream, run } = await setUp(t)
  const running = run('/interim', { limits: { ...LIMITS, idleGapMs: 500 } })
  t.is((await running.ended).outcome, 'idle_timeout')
  await upstream.disconnected
})

test('a slow trickle is not idle, but ends at the hop timeout', async (t) => {
  const { run } = await setUp(t)
  const patient = run('/drip', { limits: { ...LIMITS, idleGapMs: 5_000 } })
  t.is(await textOf((await started(patient)).body), '..........')
  t.is((await patient.ended).outcome, 'completed')

  const hurried = run('/drip', { limits: { ...LIMITS, hopTimeoutMs: 120 } })
  t.like(await hurried.ended, { outcome: 'hop_timeout', proxyError: 'http_response_timeout' })
})

test('a client that disconnects before the response closes the upstream connection', async (t) => {
  const { upstream, run } = await setUp(t)
  const controller = new AbortController()
  const running = run('/silent', { signal: controller.signal })
  while (upstream.requests.length === 0) await delay(5)
  controller.abort()
  t.is((await running.started).tag, 'failed')
  t.is((await running.ended).outcome, 'client_closed')
  await upstream.disconnected
})

test('a request of a disconnected client is not relayed', async (t) => {
  const { upstream, run } = await setUp(t)
  t.is((await run('/bytes/1', { signal: AbortSignal.abort() }).ended).outcome, 'client_closed')
  t.is(upstream.requests.length, 0)
})

test('a client that cancels the response closes the connection', async (t) => {
  const { upstream, run } = await setUp(t)
  const running = run(`/bytes/${STREAM_BYTES}`)
  const { body } = await started(running)
  await body.read()
  body.cancel()
  t.is((await running.ended).outcome, 'client_closed')
  await upstream.disconnected
})

test('a client whose upload breaks off closes the connection', async (t) => {
  const { upstream, run } = await setUp(t)
  const { stream, writer } = bytePipe()
  const running = run('/hash', { method: 'POST', body: stream })
  await writer.write(new Uint8Array(1000))
  while (upstream.taken === 0) await delay(5)
  writer.abort('connection lost')
  t.is((await running.ended).outcome, 'client_closed')
  await upstream.disconnected
})

test('an early response ends the upload', async (t) => {
  const { run } = await setUp(t)
  const { stream, writer } = bytePipe()
  let cancelled = false
  writer.onCancel = () => {
    cancelled = true
  }
  await writer.write(new Uint8Array(1000))
  const running = run('/early', { method: 'POST', body: stream })
  const start = await started(running)
  t.is(start.status, 413)
  t.is(await textOf(start.body), 'too much')
  t.is((await running.ended).outcome, 'completed')
  t.true(cancelled)
})

for (const [title, path, byteBudget, outcome, bytes] of [
  ['exactly the budget', '/bytes/100000', 100_000, 'completed', 100_000],
  ['one byte over the budget', '/bytes/100000', 99_999, 'budget_exhausted', null],
  ['nothing of a spent budget', '/bytes/100000', 0, 'budget_exhausted', 0],
] as const) {
  test(`a relay of ${title} ends as ${outcome}`, async (t) => {
    const { run } = await setUp(t)
    const running = run(path, { byteBudget: purseOf(byteBudget) })
    const start = await running.started
    if (start.tag === 'relaying') {
      const reading = textOf(start.body)
      if (outcome === 'completed') await reading
      else await t.throwsAsync(reading, { message: /budget_exhausted/ })
    }
    const report = await running.ended
    t.is(report.outcome, outcome)
    t.true(report.bytes <= byteBudget)
    if (bytes !== null) t.is(report.bytes, bytes)
  })
}

/** A byte budget with small portions. */
function purseOf(bytes: number): ByteBudget {
  let left = bytes
  return new ByteBudget(0, async (bytesMin) => {
    const taken = bytesMin <= left ? Math.min(left, bytesMin + 10) : 0
    left -= taken
    return taken
  })
}

test('request bytes and response bytes share the budget', async (t) => {
  const { run } = await setUp(t)
  const echo = (byteBudget: number) => {
    const body = ByteStream.from(new Uint8Array(1000))
    return run('/echo', { method: 'POST', body, byteBudget: purseOf(byteBudget) })
  }
  const enough = echo(2000)
  await textOf((await started(enough)).body)
  t.like(await enough.ended, { outcome: 'completed', bytes: 2000 })
  t.like(await echo(1999).ended, { outcome: 'budget_exhausted' })
  t.like(await echo(999).ended, { outcome: 'budget_exhausted', requestBytes: 0 })
})

test('the least recently used pools are closed beyond the limit', async (t) => {
  const upstreams = createUpstreams(createDialer({ privateNetworks: true, dnsOverrides: {} }), 2)
  const first = upstreams.of('http://a.example')
  upstreams.of('http://b.example')
  t.is(upstreams.of('http://a.example'), first)
  upstreams.of('http://c.example')
  t.is(upstreams.size, 2)
  t.is(upstreams.of('http://a.example'), first)
  await upstreams.close()
})
