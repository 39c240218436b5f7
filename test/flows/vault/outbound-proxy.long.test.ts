/** Calls through tinyproxy, and calls that a service does not give to its proxy. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { program, testWithProgram } from '../../support/service/programs.js'
import { freePort } from '../../support/service.js'
import { connectProxy, echoed, houseBehind } from '../../support/vault/outbound-proxy.js'

testWithProgram(
  'tinyproxy',
  'an egress call goes through a real proxy to the checked address',
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-tinyproxy-'))
    const port = await freePort()
    const log = join(folder, 'log')
    const file = join(folder, 'tinyproxy.conf')
    writeFileSync(
      file,
      `Port ${port}\nListen 127.0.0.1\nAllow 127.0.0.1\nLogFile "${log}"\nLogLevel Connect\nTimeout 60\nMaxClients 20\n`,
    )
    const child = spawn(program('tinyproxy')!, ['-d', '-c', file], { stdio: 'ignore' })
    t.teardown(async () => {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
      rmSync(folder, { recursive: true })
    })
    const house = await houseBehind(t, `http://127.0.0.1:${port}`)
    const { code, status, text } = await echoed(house)
    t.is(code, 200, text)
    t.is(text, 'through the proxy')
    t.regex(status, /received-status=200/)
    const upstreamPort = new URL(house.upstream.origin).port
    t.regex(readFileSync(log, 'utf8'), new RegExp(`CONNECT 127\\.0\\.0\\.1:${upstreamPort} `))
  },
)

test('a name with a private address is refused before the proxy is asked', async (t) => {
  const proxy = await connectProxy(t)
  const house = await houseBehind(t, proxy.url, {
    SVC_PROXY__CONNECT_TO: 'name',
    SVC_VAULT__EGRESS_ALLOW_PRIVATE_NETWORKS: 'false',
  })
  const { code, status } = await echoed(house)
  t.is(code, 403)
  t.regex(status, /error=http_request_denied/)
  t.is(proxy.asked.length, 0)
})
