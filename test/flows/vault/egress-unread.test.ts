/** Buffered responses that clients do not read count against the share, and are released. */
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import test from 'ava'
import { EGRESS_LIMITS, PROFILES } from '../../support/fleet/profiles.js'
import { until } from '../../support/service/watch.js'
import {
  bodyCall,
  type EgressHouse,
  egressHouse,
  settingOf,
  type Setting,
} from '../../support/vault/egress.js'

const { responseBytes: ANSWER_BYTES, tenantBytes } = EGRESS_LIMITS
const ANSWERS = Math.floor(tenantBytes / ANSWER_BYTES)
const houses = new Map<string, EgressHouse>([
  // The default on loopback is uWebSockets.
  ['uws', await egressHouse({ transport: 'plain_http' })],
  [
    'http1',
    await egressHouse({
      transport: 'plain_http',
      environment: { ...PROFILES.egress, SVC_SERVER__HTTP1_PARSER: 'node' },
    }),
  ],
  ['http2', await egressHouse({ transport: 'tls_h2_only' })],
])
test.after.always(async () => {
  for (const resources of houses.values()) await resources.end()
})

const PATH = '/v1/proxy/body'

function fieldsOf({ upstream }: EgressHouse, setting: Setting): Record<string, string> {
  return {
    authorization: `Bearer ${setting.direct}`,
    ...bodyCall(setting, `${upstream.origin}/bytes/${ANSWER_BYTES}`, {
      'x-svc-method': 'GET',
      'x-svc-stream-response': 'false',
    }),
  }
}

/** Reads only the headers of a response. @returns the status and a function that disconnects. */
type Held = { readonly status: number; readonly leave: () => void }

function overHttp1(resources: EgressHouse, fields: Record<string, string>): Promise<Held> {
  const { hostname, port, host } = new URL(resources.running.baseUrl)
  const socket = connect(Number(port), hostname).pause()
  socket.on('error', () => undefined)
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(
    `POST ${PATH} HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 0\r\n${lines.join('')}\r\n`,
  )
  return new Promise((resolve) => {
    socket.once('readable', () => {
      const [, status] = String(socket.read(12)).split(' ')
      resolve({ status: Number(status), leave: () => socket.destroy() })
    })
  })
}

function overHttp2(resources: EgressHouse, fields: Record<string, string>): Promise<Held> {
  const { origin, host } = new URL(resources.running.baseUrl)
  const session = connectHttp2(origin, { ca: resources.running.ca })
  session.on('error', () => undefined)
  const head = { ':method': 'POST', ':path': PATH, ':authority': host }
  const stream = session.request({ ...head, ...fields }, { endStream: true })
  stream.on('error', () => undefined)
  return new Promise((resolve) => {
    stream.once('response', ({ ':status': status }) =>
      resolve({ status: Number(status), leave: () => session.destroy() }),
    )
  })
}

function holdOne(resources: EgressHouse, setting: Setting): Promise<Held> {
  const fields = fieldsOf(resources, setting)
  return resources.running.ca === undefined
    ? overHttp1(resources, fields)
    : overHttp2(resources, fields)
}

/** The status and length of the same call by a client that reads. */
async function call(resources: EgressHouse, setting: Setting) {
  const { statusCode, headers, body } = await resources.send(PATH, {
    token: setting.direct,
    headers: fieldsOf(resources, setting),
  })
  return { statusCode, headers, bytes: (await body.arrayBuffer()).byteLength }
}

for (const [transport, resources] of houses) {
  test.serial(`${transport}: unread buffered responses stay counted`, async (t) => {
    const [hostile, honest] = [await settingOf(resources), await settingOf(resources)]
    const holds: Held[] = []
    for (let held = 0; held < ANSWERS; held += 1) holds.push(await holdOne(resources, hostile))
    t.true(holds.every(({ status }) => status === 200))
    const refused = await call(resources, hostile)
    t.is(refused.statusCode, 503)
    t.is(refused.headers['retry-after'], '1')
    const served = await call(resources, honest)
    t.is(served.statusCode, 200)
    t.is(served.headers['content-length'], String(ANSWER_BYTES))
    t.is(served.bytes, ANSWER_BYTES)
    for (const { leave } of holds) leave()
    // All shares are released: as many responses as fit are served concurrently.
    const isServed = async () => {
      const calls = Array.from({ length: ANSWERS }, () => call(resources, hostile))
      return (await Promise.all(calls)).every(({ statusCode }) => statusCode === 200)
    }
    await until('the bytes are free', isServed)
  })
}
