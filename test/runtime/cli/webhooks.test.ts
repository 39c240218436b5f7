import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { Command } from 'commander'
import { webhooksCommand } from '../../../runtime/cli/webhooks/webhooks.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { good, webhook } from '../../vectors/webhook-cases.js'

async function world(t: ExecutionContext) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-cli-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const [secretFile, body] = [join(folder, 'secret'), join(folder, 'body')]
  await writeFile(secretFile, `${webhook.secret}\n`)
  await writeFile(body, webhook.body)
  const run = async (...words: string[]) => {
    const said = { out: '', err: '', code: -1 }
    const program = new Command('svc').exitOverride()
    webhooksCommand(program, {
      out: (text) => {
        said.out += text
      },
      err: (text) => {
        said.err += text
      },
      exitWith: (code) => {
        said.code = code
      },
      clock: systemClock,
      signal: new AbortController().signal,
    })
    await program.parseAsync(['node', 'svc', 'webhooks', ...words, '--secret-file', secretFile])
    return said
  }
  return { folder, body, secretFile, run }
}

test('the published delivery verifies, and one with another time does not', async (t) => {
  const { body, run } = await world(t)
  const headers = Object.entries(good()).flatMap(([name, value]) => [
    '--header',
    `${name.toUpperCase()}: ${value}`,
  ])
  const at = String(webhook.timestamp)
  const genuine = await run('verify', '--body', body, ...headers, '--now', at)
  t.is(genuine.code, 0)
  t.like(JSON.parse(genuine.out), { tag: 'genuine', deliveryId: webhook.delivery_id })
  const old = await run('verify', '--body', body, ...headers)
  t.is(old.code, 1)
  t.deepEqual(JSON.parse(old.out), { tag: 'refused', reason: 'too_old' })
  const spaced = headers.map((line) => line.replace('X-SVC-EVENT: ', '$&two words '))
  const lacking = await run('verify', '--body', body, ...spaced)
  t.is(lacking.code, 1)
  t.deepEqual(JSON.parse(lacking.out), {
    tag: 'refused',
    reason: 'malformed_header',
    header: 'x-svc-event',
  })
  const bad = await run('verify', '--body', body, '--header', 'no colon')
  t.is(bad.code, 1)
  t.regex(bad.err, /name: value/)
})

test('a secret that is too short is refused, and nothing is verified or sent with it', async (t) => {
  const { body, secretFile, run } = await world(t)
  for (const secret of ['', '\n', 'only-15-bytes--\n']) {
    await writeFile(secretFile, secret)
    for (const words of [
      ['verify', '--body', body, '--header', 'a: b'],
      ['trigger', '--to', 'http://127.0.0.1:1/'],
    ]) {
      const { code, out, err } = await run(...words)
      t.deepEqual([code, out], [1, ''])
      t.regex(err, /fewer than 16 bytes/)
    }
  }
})

test('verify accepts what trigger sends', async (t) => {
  const { folder, run } = await world(t)
  const got: { headers: IncomingHttpHeaders; body: string }[] = []
  let status = 204
  const server = createServer((incoming, response) => {
    let body = ''
    incoming.on('data', (chunk: Buffer) => {
      body += chunk.toString()
    })
    incoming.on('end', () => {
      got.push({ headers: incoming.headers, body })
      response.writeHead(status).end()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const to = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  const sent = await run('trigger', '--to', to, '--type', 'commerce.payment.succeeded')
  t.is(sent.code, 0, sent.err)
  const [delivery] = got
  t.is(delivery!.headers['x-svc-event'], 'commerce.payment.succeeded')
  const file = join(folder, 'received')
  await writeFile(file, delivery!.body)
  const headers = Object.entries(delivery!.headers).flatMap(([name, value]) => [
    '--header',
    `${name}: ${String(value)}`,
  ])
  const verified = await run('verify', '--body', file, ...headers)
  t.is(verified.code, 0, verified.out)
  const json = await run('trigger', '--to', to, '--json')
  const id = got[1]!.headers['x-svc-delivery']
  t.like(JSON.parse(json.out), { status: 204, type: 'webhook.test', delivery_id: id })
  status = 500
  t.is((await run('trigger', '--to', to)).code, 1)
  t.is((await run('trigger', '--to', 'http://127.0.0.1:1/')).code, 1)
})
