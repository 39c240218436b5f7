/** Clients that ask for long lists many times and read nothing. */
import { type ClientHttp2Session, connect } from 'node:http2'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import test, { type ExecutionContext } from 'ava'
import { z } from 'zod'
import { reply, route } from '../../../gateway/route.js'
import { probe } from '../probe.js'
import { connectRaw } from '../raw.js'
import { isUws, openStage, type Stage, type Transport } from '../stage.js'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const MIB = 1024 * 1024
const ROW = 'x'.repeat(997)
const ROWS = 800
const COUNT = 1_000

/** A list of 800 KB, and the count of the answers that were made of it. */
function listed() {
  const counts = { made: 0 }
  const list = route(probe, 'document', {
    tags: ['Probe'],
    exposure: 'public',
    security: { scheme: 'bearer', scopes: ['probe:read'] },
    method: 'GET',
    path: '/list',
    operationId: 'probeList',
    summary: 'Give a long list',
    throttle: 'none',
    query: z.object({ limit: z.coerce.number().optional() }),
    message: () => null,
    replies: {
      document: reply(200, z.array(z.string()).meta({ id: 'ProbeList' }), () => {
        counts.made += 1
        return Array.from({ length: ROWS }, () => ROW)
      }),
    },
  })
  const other = route(probe, 'hello', {
    tags: ['Probe'],
    exposure: 'public',
    security: { scheme: 'anonymous' },
    method: 'GET',
    path: '/other',
    operationId: 'probeOther',
    summary: 'Give a short answer',
    throttle: 'none',
    message: () => null,
    replies: { hello: reply(200, z.object({}).meta({ id: 'ProbeOther' }), () => ({})) },
  })
  return { counts, routes: [list, other] }
}

const headers = { authorization: 'Bearer good' }
const request = `GET /list HTTP/1.1\r\nhost: id.test\r\nauthorization: Bearer good\r\n\r\n`

/** A connection that sends many requests and reads nothing. Resolves when the first answer is under way. */
async function flood(t: ExecutionContext, stage: Stage): Promise<{ end(): void }> {
  if (stage.transport === 'http2') return floodStreams(t, stage)
  const socket = connectRaw(stage).pause()
  socket.on('error', () => undefined)
  t.teardown(() => void socket.destroy())
  // uWebSockets closes a connection with a request behind a running one.
  socket.write(isUws(stage.transport) ? request : request.repeat(COUNT))
  await new Promise((resolve) => socket.once('readable', resolve))
  return { end: () => void socket.destroy() }
}

async function floodStreams(t: ExecutionContext, stage: Stage): Promise<{ end(): void }> {
  const session: ClientHttp2Session = connect(`https://localhost:${stage.port}`, {
    ca: stage.certificate!.pem,
    settings: { initialWindowSize: 0 },
  })
  session.on('error', () => undefined)
  t.teardown(() => session.destroy())
  const streams = Array.from({ length: 100 }, () =>
    session
      .request({ ':path': '/list', ':authority': 'id.test', ...headers })
      .on('error', () => undefined),
  )
  await Promise.race(streams.map((one) => new Promise((resolve) => one.once('response', resolve))))
  return { end: () => session.destroy() }
}

/** Connections of the flood, and the answers that may be made for each. Buffers of the kernel hold up to 12. */
const FLOODS: Readonly<Record<Transport, readonly [connections: number, answers: number]>> = {
  http1: [5, 13],
  tls: [5, 13],
  // One is written while another is made. The first session learns how long they are.
  http2: [5, 4],
  uws: [10, 1],
  uws_tls: [10, 1],
}

for (const [transport, [connections, answers]] of Object.entries(FLOODS)) {
  test.serial(`${transport}: unread lists are not made, and others are answered`, async (t) => {
    const { counts, routes } = listed()
    const stage = await openStage({
      transport: transport as Transport,
      gateway: { routes },
    })
    t.teardown(() => stage.close())
    t.is((await stage.call({ path: '/other' })).status, 200)
    const before = process.memoryUsage()
    const floods = await Promise.all(Array.from({ length: connections }, () => flood(t, stage)))
    for (let call = 0; call < 20; call += 1) {
      t.is((await stage.call({ path: '/other' })).status, 200)
    }
    collectGarbage()
    const after = process.memoryUsage()
    t.true(counts.made <= connections * answers, `${counts.made} answers were made`)
    const more = after.heapUsed + after.external - before.heapUsed - before.external
    t.true(more < 32 * MIB, `${Math.round(more / MIB)} MiB more`)
    for (const one of floods) one.end()
    const list = await stage.call({ path: '/list', headers })
    t.is(JSON.parse(list.text).length, ROWS)
  })
}

for (const transport of ['http1', 'tls', 'http2'] as const) {
  test.serial(`${transport}: a client that reads gets all of many long lists`, async (t) => {
    const { counts, routes } = listed()
    const stage = await openStage({ transport, gateway: { routes } })
    t.teardown(() => stage.close())
    if (transport === 'http2') {
      const lists = await Promise.all(
        Array.from({ length: 40 }, () => stage.call({ path: '/list', headers })),
      )
      for (const { text } of lists) t.is(JSON.parse(text).length, ROWS)
    } else {
      const socket = connectRaw(stage)
      t.teardown(() => void socket.destroy())
      let text = ''
      const whole = 40 * JSON.stringify(Array.from({ length: ROWS }, () => ROW)).length
      const arrived = new Promise<void>((resolve) =>
        socket.setEncoding('latin1').on('data', (chunk: string) => {
          text += chunk
          if (text.length > whole && text.split('HTTP/1.1 200 OK').length === 41) resolve()
        }),
      )
      socket.write(request.repeat(40))
      await arrived
    }
    t.is(counts.made, 40)
  })
}
