/** Invalid responses and unusual disconnects do not affect the service. */
import { createHash } from 'node:crypto'
import { connect, type ClientHttp2Stream } from 'node:http2'
import test from 'ava'
import {
  bodyCall,
  closedCalls,
  type EgressHouse,
  egressHouse,
  settingOf,
} from '../../support/vault/egress.js'
import { notThrough } from '../../support/fleet/through.js'
import { REPEATED_OVER, TRANSPORTS } from '../../support/service.js'
import { until } from '../../support/service/watch.js'

const MIB = 2 ** 20
const houses = new Map<string, EgressHouse>()
for (const transport of TRANSPORTS) houses.set(transport, await egressHouse({ transport }))

for (const transport of REPEATED_OVER) {
  const at = houses.get(transport)!
  test.serial(
    `a status beyond 599 is a 502 and affects no other call (${transport})`,
    async (t) => {
      const setting = await settingOf(at)
      const call = (path: string, stream: string) =>
        at.send('/v1/proxy/body', {
          token: setting.direct,
          headers: bodyCall(setting, at.upstream.origin + path, {
            'x-svc-method': 'GET',
            'x-svc-stream-response': stream,
          }),
        })
      for (const stream of ['true', 'false']) {
        for (const status of [600, 999]) {
          const answer = await call(`/status/${status}`, stream)
          t.is(answer.statusCode, 502, `${status}, stream ${stream}`)
          t.is(answer.headers['proxy-status'], 'svc-egress; error=http_protocol_error')
          await answer.body.dump()
        }
        // 205 has no content, though this response has some.
        const reset = await call('/status/205', stream)
        t.is(reset.statusCode, 205)
        t.is(await reset.body.text(), '')
        const last = await call('/status/599', stream)
        t.is(last.statusCode, 599)
        t.is(await last.body.text(), 'as it says')
      }
      const outcomes = (await closedCalls(at, setting.tenantId, 8)).map(({ outcome }) => outcome)
      t.is(outcomes.filter((outcome) => outcome === 'upstream_error').length, 4)
      t.is(outcomes.filter((outcome) => outcome === 'completed').length, 4)
    },
  )

  test.serial(`an empty response is not decoded (${transport})`, async (t) => {
    const setting = await settingOf(at)
    for (const coding of ['gzip', 'deflate', 'br', 'zstd']) {
      for (const stream of [true, false]) {
        const answer = await at.send('/v1/proxy', {
          token: setting.delegated,
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({
            credential_id: setting.credentialId,
            url: `${at.upstream.origin}/coded-nothing/${coding}`,
            stream,
          }),
        })
        t.is(answer.statusCode, 200, `${coding}, stream ${stream}`)
        t.is(await answer.body.text(), '')
      }
    }
  })
}

test.serial('an upstream may send 100 (Continue) before its response', async (t) => {
  const at = houses.get('plain_http')!
  const setting = await settingOf(at)
  for (const count of [1, 2, 20]) {
    for (const body of [undefined, 'text']) {
      const answer = await at.send('/v1/proxy/body', {
        token: setting.direct,
        headers: bodyCall(setting, `${at.upstream.origin}/continue/${count}`, {
          'x-svc-method': body === undefined ? 'GET' : 'POST',
        }),
        ...(body === undefined ? {} : { body }),
      })
      t.is(answer.statusCode, 200)
      t.is(await answer.body.text(), 'continued')
    }
  }
})

test.serial('a base64 body can be as large as the document allows', async (t) => {
  const at = houses.get('plain_http')!
  const setting = await settingOf(at)
  const call = (base64: string) =>
    at.api.post('/v1/proxy', setting.delegated, {
      credential_id: setting.credentialId,
      method: 'POST',
      url: `${at.upstream.origin}/echo`,
      body_base64: base64,
      stream: true,
    })
  for (const bytes of [0, 1, 2, 3, 6 * MIB - 1000]) {
    const body = Buffer.alloc(bytes, 'svc ')
    const answer = await at.send('/v1/proxy', {
      token: setting.delegated,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        credential_id: setting.credentialId,
        method: 'POST',
        url: `${at.upstream.origin}/echo`,
        body_base64: body.toString('base64'),
        stream: true,
      }),
    })
    t.is(answer.statusCode, 200, String(bytes))
    const hash = createHash('sha256')
    for await (const chunk of answer.body) hash.update(chunk as Buffer)
    t.is(hash.digest('hex'), createHash('sha256').update(body).digest('hex'))
  }
  for (const text of ['A', 'AA', 'AAA', 'A===', 'AA=A', 'AA==AAAA', 'AA-_', 'AAA\n', '====']) {
    t.is((await call(text)).status, 400, JSON.stringify(text))
  }
})

/** Resets a stream with NO_ERROR before the end of its body. */
function leave(stream: ClientHttp2Stream): void {
  const symbol = Object.getOwnPropertySymbols(stream).find(
    ({ description }) => description === 'kHandle',
  )!
  const handle = (stream as unknown as Record<symbol, { rstStream(code: number): void }>)[symbol]!
  handle.rstStream(0)
}

test.serial(
  'a caller that resets its stream with NO_ERROR in the middle of its body',
  async (t) => {
    notThrough('it resets a stream to a process')
    const at = houses.get('tls_h2_only')!
    const setting = await settingOf(at)
    const session = connect(at.running.baseUrl, { ca: at.running.ca })
    session.on('error', () => undefined)
    t.teardown(() => session.destroy())
    const begin = (path: string, body: Buffer) => {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/v1/proxy/body',
        authorization: `Bearer ${setting.direct}`,
        ...bodyCall(setting, at.upstream.origin + path),
      })
      stream.on('error', () => undefined)
      stream.write(body)
      return stream
    }
    // A body that is read, and one beyond the buffers to an upstream that does not read.
    for (const [index, [path, bytes]] of (
      [
        ['/hash', 1000],
        ['/silent/left', 32 * MIB],
      ] as const
    ).entries()) {
      const arrived = () => at.upstream.requests.find(({ url }) => url === path)
      const stream = begin(path, Buffer.alloc(bytes))
      await until(`${path} arrived`, () => arrived() !== undefined)
      leave(stream)
      await closedCalls(at, setting.tenantId, index + 1)
      t.false(arrived()!.complete, `${path}: what was cut off is not whole`)
    }
    const answer = await at.send('/v1/proxy/body', {
      token: setting.direct,
      headers: bodyCall(setting, `${at.upstream.origin}/status/200`, { 'x-svc-method': 'GET' }),
    })
    t.is(answer.statusCode, 200)
    await answer.body.dump()
    const closed = await closedCalls(at, setting.tenantId, 3)
    const outcomes = closed.map(({ outcome }) => outcome)
    t.deepEqual(outcomes, ['client_closed', 'client_closed', 'completed'])
  },
)
