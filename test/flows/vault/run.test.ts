/** Unmodified programs under `svc run` (docs/guides/vault/svc-run.md). A start costs more than a call: a run makes many. */
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import test from 'ava'
import { digestOf } from '../../actors/vault/egress/upstream.js'
import type { Json } from '../../support/api.js'
import {
  CREDENTIALS,
  delegatedToken,
  egressHouse,
  SECRET,
  type Setting,
  settingOf,
  UPSTREAM_NAME,
} from '../../support/vault/egress.js'
import { THROUGH } from '../../support/fleet/through.js'
import { approvalScene } from '../../support/vault/approvals.js'
import { svcRunOf } from '../../support/vault/svc-run.js'
import { until } from '../../support/service/watch.js'

const MIB = 2 ** 20
const resources = await egressHouse()
const { upstream, api } = resources
const setting = await settingOf(resources)
const scope = { scope: 'vault:list vault:read' }
const listerOf = ({ direct, agentId }: Setting) =>
  delegatedToken(resources.running, direct, agentId, scope)
const svcRun = await svcRunOf(resources, { delegated: await listerOf(setting) })
test.after.always(() => svcRun.end())

const at = (path: string) => `${upstream.origin}${path}`
const last = () => upstream.requests.at(-1)!
const access = ['--url', resources.running.baseUrl, '--token-file', svcRun.tokenFile]
/** The commands of a shell in one run. */
const runLines = (...lines: readonly string[]) => svcRun.run([], ['sh', '-c', lines.join('\n')])

test.serial(
  'curl uses the credential of the host, and is refused for a host without',
  async (t) => {
    const { code, out, err } = await runLines(
      // The header of an SDK with a placeholder key.
      `curl -sS -i -H 'authorization: Bearer none-of-your-business' ${at('/headers')}; echo`,
      'curl -sS -i https://elsewhere.example/; echo',
      `curl -sS -o /dev/null -w 'plain %{http_code}\\n' http://127.0.0.2:1/`,
      `curl -sS http://${new URL(upstream.origin).host}/echo`,
    )
    t.is(code, 0, err)
    t.is(last().headers.authorization, `Bearer ${SECRET}`)
    t.regex(out, /HTTP\/1\.1 200/)
    t.regex(out, /proxy-status: svc-egress; received-status=200/i)
    t.true(out.includes('[redacted]'))
    t.false(out.includes(SECRET))
    t.regex(err, /^svc: deployment \S+ \(from --url\)\n/)
    t.regex(out, /^HTTP\/1\.1 403 [^]*application\/problem\+json/m)
    t.regex(out, /There is no credential for elsewhere\.example/)
    t.regex(out, /proxy-status: svc-run; error=http_request_denied/)
    t.regex(err, /svc run: GET elsewhere\.example: There is no credential/)
    t.regex(out, /^plain 403$/m)
    t.regex(out, /A credential is used with https only/)
  },
)

test.serial('bodies of any length arrive, and an aborted one does not look complete', async (t) => {
  const file = join(svcRun.home, 'body')
  await writeFile(file, Buffer.alloc(4 * MIB, 'svc '))
  const script = `curl -sSN ${at('/pause/held')}
    curl -sS --data-binary @${file} ${at('/hash')} && echo
    curl -sS -X POST -T - ${at('/hash')} < ${file} && echo
    curl -sS ${at(`/bytes/${8 * MIB}`)} | sha256sum
    curl -sS -X POST -T - ${at('/echo')} < ${file} | sha256sum
    curl -sS ${at('/reset-in-body')} > /dev/null || echo broken`
  const running = svcRun.begin(['run', ...access, '--', 'sh', '-c', script])
  t.is(await running.printed(/before/), 'before ')
  upstream.releaseEvents()
  const { out, err } = await running.ended
  const [streamed, ended, ...lines] = out.split('\n')
  t.deepEqual([streamed, ended], ['before data: now', ''], err)
  const hashes = lines.slice(0, 2).map((line) => (JSON.parse(line) as { sha256: string }).sha256)
  t.deepEqual(hashes, [digestOf(4 * MIB), digestOf(4 * MIB)], err)
  const uploads = upstream.requests.filter(({ url }) => url === '/hash')
  const lengths = uploads.map(({ headers }) => headers['content-length'])
  t.deepEqual(lengths, [String(4 * MIB), undefined])
  const [down, echoed] = lines.slice(2).map((line) => line.split(' ')[0])
  t.is(down, digestOf(8 * MIB), err)
  // nginx sends no more of a request once its response has begun.
  if (THROUGH !== 'nginx') t.is(echoed, digestOf(4 * MIB), err)
  t.is(lines[4], 'broken')
})

test.serial('node: fetch, agents of the program, keep-alive and worker threads', async (t) => {
  const script = `
    import https from 'node:https'
    import http from 'node:http'
    import { once } from 'node:events'
    import { Worker } from 'node:worker_threads'
    const [address] = process.argv.slice(1)
    const say = (...words) => process.stdout.write(words.join(' ') + '\\n')
    const answer = await fetch(address + '/echo', { method: 'POST', body: 'hello' })
    say(answer.status, await answer.text())
    const many = await Promise.all(Array.from({ length: 16 }, (_, n) =>
      fetch(address + '/echo', { method: 'POST', body: String(n) }).then((one) => one.text())))
    say(many.reduce((sum, text) => sum + Number(text), 0))
    const get = (agent) => new Promise((resolve, reject) =>
      https.get(address + '/headers', { agent, headers: { authorization: 'x' } }, async (got) => {
        let text = ''
        for await (const part of got) text += part
        resolve(got.statusCode + ' ' + text.includes('[redacted]'))
      }).on('error', reject))
    class OwnAgent extends https.Agent {}
    for (const agent of [false, undefined, new https.Agent({ keepAlive: true }), new OwnAgent()])
      say(await get(agent))
    const server = http.createServer((_, response) => response.end('local')).listen(0, '127.0.0.1')
    await once(server, 'listening')
    say(await (await fetch('http://127.0.0.1:' + server.address().port)).text())
    const code = 'import { parentPort, workerData } from "node:worker_threads";' +
      'fetch(workerData, { headers: { authorization: "x" } }).then((got) => got.text())' +
      '.then((text) => parentPort.postMessage(text.includes("[redacted]")))'
    const worker = new Worker(code, { eval: true, workerData: address + '/headers' })
    say(...await once(worker, 'message'))
    process.exit(0)`
  const command = ['node', '--input-type=module', '-e', script, upstream.origin]
  const { out, err, code } = await svcRun.run([], command)
  t.is(out, `200 hello\n120\n${'200 true\n'.repeat(4)}local\ntrue\n`, err)
  t.is(code, 0)
})

test.serial('a passed-through response is unchanged', async (t) => {
  const server = createServer((request, response) => {
    if (request.method === 'GET') return response.end(`self ${request.url}`)
    let bytes = 0
    request.on('data', (chunk) => (bytes += chunk.length))
    return request.on('end', () => response.end(`${bytes} ${request.headers.expect}`))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.2', resolve))
  t.teardown(() => void server.close())
  const { port } = server.address() as { port: number }
  const address = `http://127.0.0.2:${port}/x?y`
  const body = join(svcRun.home, 'body')
  await writeFile(body, Buffer.alloc(MIB))
  const send = (expect: string, url: string) =>
    `curl -sSv -w '%{http_code}' -H 'Expect: ${expect}' --data-binary @${body} ${url}; echo`
  // A program that still sends gets the error of an unavailable host, and 407 without password.
  const stranger = `-x "http://\${http_proxy##*@}" ${address}`
  const script = `${send('100-continue', address)}
    curl -sS ${address}; echo
    curl -sSp ${address}; echo
    ${send('', 'http://127.0.0.2:1/')}
    ${send('', stranger)}
    ${send('100-continue', stranger)}
    curl -sS ${at('/headers')}`
  const { out, err } = await svcRun.run(['--passthrough', '*'], ['sh', '-c', script])
  const lines = out.split('\n')
  t.deepEqual(lines.slice(0, 3), [`${MIB} undefined200`, 'self /x?y', 'self /x?y'], err)
  t.regex(err, /100 Continue/)
  t.regex(out, /^.*502\n407\n407\n/m, err)
  // A host with a credential is never passed through.
  t.regex(lines.at(-1)!, /\[redacted\]/)
})

test.serial('with two credentials for a host one must be named', async (t) => {
  const both = await settingOf(resources)
  const second = await api.post(CREDENTIALS, both.operator, {
    provider: 'upstream',
    credential_type: 'api_key',
    label: 'Second',
    auth_scheme: 'query:key',
    allowed_hosts: [UPSTREAM_NAME],
    secret: 'second-canary',
  })
  const id = String(second.body['id'])
  await api.post(`${CREDENTIALS}/${id}/grants`, both.operator, {
    grantee_type: 'agent',
    grantee_id: both.agentId,
  })
  const own = await svcRunOf(resources, { delegated: await listerOf(both) })
  t.teardown(() => own.end())
  const refused = await own.run([], ['curl', '-sS', at('/echo')])
  t.regex(refused.out, /There are 2 credentials/)
  t.true(refused.out.includes(id))
  // The list has its scheme; the program's own parameter is removed.
  const chosen = await own.run(
    ['--credential', `${UPSTREAM_NAME}=${id}`],
    ['curl', '-sS', at('/echo?a=1&KEY=mine&b=%2F')],
  )
  t.is(chosen.code, 0, chosen.err)
  t.is(last().url, '/echo?a=1&b=%2F&key=second-canary')
})

test.serial('a token of the file and the end of a grant apply to the next call', async (t) => {
  const fallen = await settingOf(resources)
  const own = await svcRunOf(resources, { delegated: fallen.direct })
  t.teardown(() => own.end())
  const { home, tokenFile } = own
  const call = `curl -sS -w ' %{http_code}\\n' ${at('/echo')}`
  const script = `${call}
    cp ${tokenFile} ${home}/kept; echo invalid > ${tokenFile}
    ${call}
    cp ${home}/kept ${tokenFile}
    ${call}; echo served
    until [ -e ${home}/revoked ]; do sleep 0.05; done
    ${call}`
  const named = ['--credential', `${UPSTREAM_NAME}=${fallen.credentialId}`]
  const url = ['--url', resources.running.baseUrl, '--token-file', tokenFile]
  const running = own.begin(['run', ...url, ...named, '--', 'sh', '-c', script])
  const before = await running.printed(/served/)
  t.deepEqual(before.match(/ \d{3}$/gm), [' 200', ' 401', ' 200'])
  await api.post(`/api/v1/vault/grants/${fallen.grantId}/revoke`, fallen.operator, {})
  await writeFile(join(home, 'revoked'), '')
  const { out, err } = await running.ended
  t.regex(out, /policy_denied[^]* 403\n$|not_found[^]* 404\n$/)
  t.regex(err, /svc-egress; error=http_request_denied/)
})

test.serial('all valid header names arrive, and a too large body is 413', async (t) => {
  const odd = ['api_version: 2', 'x.y: z', 'x-plain: p', 'x-n: café']
  const path = join(svcRun.home, 'large')
  await writeFile(path, Buffer.alloc(32 * MIB + 1))
  const { out, err } = await runLines(
    `curl -sS ${odd.map((line) => `-H '${line}'`).join(' ')} ${at('/headers')}; echo`,
    `curl -sS -w '%{http_code}\\n' '${at('/headers?q=é')}'`,
    `curl -sS -w '%{http_code}\\n' --data-binary @${path} ${at('/hash')}`,
    `curl -sS -v -w '%{http_code}' -H 'Expect: 100-continue' -d x ${at('/echo')}`,
  )
  const { headers } = upstream.requests.findLast(({ url }) => url === '/headers')!
  const utf8 = Buffer.from('café').toString('latin1')
  t.like(headers, { api_version: '2', 'x.y': 'z', 'x-plain': 'p', 'x-n': utf8 }, err)
  t.regex(out, /^.*400$/m)
  t.regex(err, /invalid HTTP request/)
  t.regex(out, /"payload_too_large"[^}]*\}413\n/, err)
  t.regex(err, /32 MiB/)
  t.regex(err, /100 Continue[^]*200 OK/)
  t.true(out.endsWith('x200'))
})

test.serial('svc egress calls with the credential of the host', async (t) => {
  const { code, out, err } = await svcRun.egress(at('/headers'))
  t.is(code, 0, err)
  t.true(out.includes('[redacted]'))
  t.is(last().headers.authorization, `Bearer ${SECRET}`)
})

/** An MCP server: one tool that calls an API without having its key. JSON-RPC, one message per line. */
const SERVER = `
import { createInterface } from 'node:readline'
const [address] = process.argv.slice(2)
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'files', version: '1' },
  }),
  'tools/list': () => ({ tools: [{ name: 'look', inputSchema: { type: 'object' } }] }),
  async 'tools/call'({ arguments: { path } }) {
    const answer = await fetch(address + path, { headers: { authorization: 'Bearer none' } })
    const text = await answer.text()
    return { content: [{ type: 'text', text: answer.status + ' ' + text }], isError: !answer.ok }
  },
}
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (id !== undefined) say({ id, result: await answers[method](params) })
}
`

test.serial('a tool of an MCP server calls with the credential', async (t) => {
  const file = join(svcRun.home, 'server.mjs')
  await writeFile(file, SERVER)
  const child = svcRun.host(['node', file, resources.upstream.origin])
  t.teardown(() => child.kill('SIGKILL'))
  const closed = once(child, 'close')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  let id = 0
  async function ask(method: string, params: Json = {}): Promise<Json> {
    id += 1
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    const { value } = (await lines.next()) as { value: string }
    const answer = JSON.parse(value) as { id: number; result: Json }
    t.is(answer.id, id)
    return answer.result
  }
  t.like(await ask('initialize', { protocolVersion: '2025-06-18', capabilities: {} }), {
    serverInfo: { name: 'files', version: '1' },
  })
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`)
  t.is(((await ask('tools/list'))['tools'] as Json[]).length, 1)
  const called = await ask('tools/call', { name: 'look', arguments: { path: '/headers' } })
  const text = (called['content'] as { text: string }[])[0]!.text
  t.regex(text, /^200 /)
  t.true(text.includes('[redacted]'))
  t.false(text.includes(SECRET))
  t.is(resources.upstream.requests.at(-1)!.headers.authorization, `Bearer ${SECRET}`)
  // When the host closes stdin, the server and the command end.
  child.stdin.end()
  t.is((await closed)[0], 0)
})

test.serial('a call waits for the person whose page is printed, and is repeated', async (t) => {
  const asked = await approvalScene(resources)
  const own = await svcRunOf(resources, { delegated: await listerOf(asked.setting) })
  t.teardown(() => own.end())
  const words = ['run', '--url', resources.running.baseUrl, '--token-file', own.tokenFile, '--']
  const { child, ended } = own.begin([...words, 'curl', '-sS', '-d', 'amount=5', at('/echo')])
  let said = ''
  child.stderr!.on('data', (text: string) => (said += text))
  const id = () => /\/vault\/approvals\/([0-9a-f-]{36})/.exec(said)?.[1]
  await until('the page is printed', () => id() !== undefined)
  t.is((await asked.answer(id()!, 'approve')).status, 200)
  const { code, out, err } = await ended
  t.is(code, 0, err)
  t.is(out, 'amount=5')
  t.like((await asked.state(id()!)).body, { status: 'used' })
})
