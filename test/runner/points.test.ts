import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { request } from 'undici'
import {
  keepExchanges,
  linesOf,
  rememberLine,
  watchExchanges,
} from '../support/service/exchanges.js'
import { readRecords, screenOf, slowestTests, startedFor, startedLine } from './points.js'

function folder(t: ExecutionContext): string {
  const made = mkdtempSync(join(tmpdir(), 'svc-points-'))
  t.teardown(() => rmSync(made, { recursive: true }))
  return made
}

const EXCHANGE = { method: 'GET', url: 'http://a/x', headers: '', body: '', answer: '', log: [] }

test('the slowest tests come first, each with its file', (t) => {
  const tests = [1, 3.26, 2].map((seconds) => ({ file: 'f', title: `t${seconds}`, seconds }))
  t.deepEqual(
    slowestTests(tests, 2, (file) => `${file}.ts`),
    ['    3.3 s  f.ts: t3.26', '    2.0 s  f.ts: t2'],
  )
})

test('a record that a killed process has not finished is left out', (t) => {
  const path = join(folder(t), 'tests')
  t.deepEqual(readRecords(path), [])
  const whole = { file: 'f', title: 'one', seconds: 1 }
  writeFileSync(path, `${JSON.stringify(whole)}\n{"file":"f","tit`)
  t.deepEqual(readRecords(path), [whole])
})

test('what was started is counted by kind, and services by who needed them', (t) => {
  const path = join(folder(t), 'started')
  t.is(startedLine(path), '0 services, 0 databases, 0 browsers')
  t.deepEqual(startedFor(path), [])
  const own = '/tree/dist/test/flows/x.test.js'
  const lines = [`database ${own}`, `service ${own}`, 'service plain', 'service plain', 'browser -']
  appendFileSync(path, `${lines.join('\n')}\n`)
  t.is(startedLine(path), '3 services, 1 database, 1 browser')
  t.deepEqual(startedFor(path), ['2 plain', '1 test/flows/x.test.ts'])
})

test('the screen of a failure shows the last request, its answer and its log', (t) => {
  const asked = [
    { ...EXCHANGE, status: 200 },
    {
      ...EXCHANGE,
      method: 'POST',
      headers: 'host: a\nauthorization: Bearer x',
      body: '{"name":"Acme"}',
      status: 409,
      answer: 'taken',
      log: ['{"msg":"refused"}'],
    },
  ]
  t.deepEqual(screenOf(asked, folder(t)), [
    'before: GET http://a/x: 200',
    'asked:  POST http://a/x',
    '  authorization: Bearer x',
    '  {',
    '   "name": "Acme"',
    '  }',
    'came:   409',
    '  taken',
    'the log of this request:',
    '  {"msg":"refused"}',
  ])
  t.deepEqual(screenOf([], folder(t)), [])
})

test('the log of a service in another process is found by the request id', (t) => {
  const logs = folder(t)
  mkdirSync(join(logs, 'fleet-1'))
  writeFileSync(join(logs, 'fleet-1', 'all.log'), '{"request_id":"r1"}\n{"request_id":"r2"}\n')
  const lines = screenOf([{ ...EXCHANGE, requestId: 'r2' }], logs)
  t.is(lines.at(-1), '  {"request_id":"r2"}')
  t.false(lines.join().includes('r1'))
})

test('each of two tests at the same time has its own requests', async (t) => {
  const server = createServer((asked, answer) => {
    answer.writeHead(418, { 'x-request-id': `id of ${asked.url}` }).end(`answer to ${asked.url}`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  keepExchanges()
  const ask = (path: string) =>
    watchExchanges(async () => {
      for (let count = 0; count < 6; count += 1) {
        const { body } = await request(`${at}${path}`, { method: 'POST', body: `sent to ${path}` })
        await body.text()
      }
      await (await fetch(`${at}${path}/fetched`)).text()
    })
  const [one, two] = await Promise.all([ask('/one'), ask('/two')])
  t.deepEqual(
    one.exchanges.map(({ url }) => url),
    [...Array.from({ length: 4 }, () => `${at}/one`), `${at}/one/fetched`],
  )
  const { method, body, status, requestId, answer } = two.exchanges[0]!
  t.deepEqual(
    { method, body, status, requestId, answer },
    {
      method: 'POST',
      body: 'sent to /two',
      status: 418,
      requestId: 'id of /two',
      answer: 'answer to /two',
    },
  )
  t.is(two.exchanges.at(-1)!.status, 418)
})

test('the last lines of a request are kept, and those of other requests apart', (t) => {
  for (let line = 0; line < 25; line += 1) {
    rememberLine(`{"request_id":"many","line":${line}}\n`)
  }
  rememberLine('{"msg":"no request"}\n')
  t.is(linesOf('many').length, 20)
  t.is(linesOf('many').at(-1), '{"request_id":"many","line":24}')
  t.deepEqual(linesOf('unknown'), [])
})
