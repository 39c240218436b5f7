/** An MCP server that a host starts with `svc run` (docs/guides/vault/svc-run.md). */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import test from 'ava'
import type { Json } from '../../support/api.js'
import { delegatedToken, egressHouse, SECRET, settingOf } from '../../support/vault/egress.js'
import { svcRunOf } from '../../support/vault/svc-run.js'

/** One tool that calls an API without having its key. JSON-RPC, one message per line. */
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

test('a tool of an MCP server calls with the credential', async (t) => {
  const resources = await egressHouse()
  const setting = await settingOf(resources)
  const scope = { scope: 'vault:list vault:read' }
  const token = await delegatedToken(resources.running, setting.direct, setting.agentId, scope)
  const svcRun = await svcRunOf(resources, { delegated: token })
  t.teardown(async () => {
    await svcRun.end()
    await resources.end()
  })
  const file = join(svcRun.home, 'server.mjs')
  await writeFile(file, SERVER)
  const child = svcRun.host(['node', file, resources.upstream.origin])
  t.teardown(() => child.kill('SIGKILL'))
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve))
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
  t.is(await closed, 0)
})
