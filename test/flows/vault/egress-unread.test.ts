/** Callers that ask for buffered answers and do not read them: what they hold counts, and comes back. */
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import test from 'ava'
import {
  bodyCall,
  type EgressHouse,
  egressHouse,
  settingOf,
  type Setting,
} from '../../support/vault/egress.js'

/** More than the buffers of the kernel hold of a connection that is not read. */
const ANSWER_BYTES = 24 * 1024 * 1024
/** Two answers and not a third. */
const ANSWERS = 2
const environment = {
  SVC_VAULT__EGRESS_BUFFERED_RESPONSE_MAX_BYTES: String(ANSWER_BYTES),
  SVC_VAULT__EGRESS_BUFFERED_BYTES_PER_TENANT_MAX: String(ANSWERS * ANSWER_BYTES + 1_000_000),
}
const houses = new Map<string, EgressHouse>([
  [
    'uws',
    await egressHouse({
      environment: { ...environment, SVC_SERVER__HTTP1_PARSER: 'uwebsockets' },
    }),
  ],
  ['http1', await egressHouse({ environment })],
  ['http2', await egressHouse({ environment, transport: 'tls_h2_only' })],
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

/** Asks for the answer and reads its head alone: the status, and what ends the connection. */
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

/** The status of the same call by a client that reads, and how much it got. */
async function call(resources: EgressHouse, setting: Setting) {
  const { statusCode, headers, body } = await resources.send(PATH, {
    token: setting.direct,
    headers: fieldsOf(resources, setting),
  })
  return { statusCode, headers, bytes: (await body.arrayBuffer()).byteLength }
}

for (const [transport, resources] of houses) {
  test.serial(`${transport}: buffered answers that are not read stay counted`, async (t) => {
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
    // All of them: as many answers as fit at once are served side by side.
    const isServed = async () => {
      const calls = Array.from({ length: ANSWERS }, () => call(resources, hostile))
      return (await Promise.all(calls)).every(({ statusCode }) => statusCode === 200)
    }
    let areFree = await isServed()
    for (let tries = 0; tries < 40 && !areFree; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, 50))
      areFree = await isServed()
    }
    t.true(areFree, 'the bytes are free')
  })
}
