/** `[proxy]`: calls to the outside go through an HTTP proxy, tinyproxy here, after the same checks as without one. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { program, testWithProgram } from '../../support/service/programs.js'
import { freePort } from '../../support/service.js'
import {
  bodyCall,
  type EgressHouse,
  egressHouse,
  settingOf,
  UPSTREAM_NAME,
} from '../../support/vault/egress.js'

/** A domain that is reached without the proxy, and a name that is not of it. */
const NO_PROXY = 'other.upstream.example'
const NAME_BEHIND = 'private.upstream.example'

/** The refusal of POST /v1/proxy/body for a call to a name of the upstream, or its answer. */
async function echoed(house: EgressHouse, name = UPSTREAM_NAME) {
  const setting = await settingOf(house, { allowed_hosts: [name] })
  const answer = await house.send('/v1/proxy/body', {
    token: setting.delegated,
    headers: bodyCall(setting, `${house.upstream.origin.replace(UPSTREAM_NAME, name)}/echo`),
    body: 'through the proxy',
  })
  const status = String(answer.headers['proxy-status'])
  return { code: answer.statusCode, status, text: await answer.body.text() }
}

async function houseWith(t: ExecutionContext, environment: Readonly<Record<string, string>>) {
  const house = await egressHouse({ environment })
  t.teardown(() => house.end())
  return house
}

interface ConnectProxy {
  readonly url: string
  /** The CONNECT requests, in order. */
  readonly asked: IncomingMessage[]
  /** From now on it refuses with this status. */
  refuse(status: number): void
  end(): void
}

/** A proxy that connects every name to loopback, or answers with a status. */
async function connectProxy(t: ExecutionContext): Promise<ConnectProxy> {
  let refusal: number | undefined
  const asked: IncomingMessage[] = []
  const sockets = new Set<Socket>()
  const server = createServer()
  server.on('connect', (request: IncomingMessage, client: Socket) => {
    asked.push(request)
    sockets.add(client)
    client.on('error', () => undefined)
    if (refusal !== undefined) {
      client.end(`HTTP/1.1 ${refusal} Refused\r\ncontent-length: 0\r\n\r\n`)
      return
    }
    const port = Number(request.url!.split(':').at(-1))
    const target = connect(port, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      client.pipe(target).pipe(client)
    })
    target.on('error', () => client.destroy())
    sockets.add(target)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const end = () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  t.teardown(end)
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    refuse: (status) => void (refusal = status),
    end,
  }
}

const settingsFor = (url: string, more: Readonly<Record<string, string>> = {}) => ({
  SVC_PROXY__ENABLED: 'true',
  SVC_PROXY__URL: url,
  ...more,
})

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
    const house = await houseWith(t, settingsFor(`http://127.0.0.1:${port}`))
    const { code, status, text } = await echoed(house)
    t.is(code, 200, text)
    t.is(text, 'through the proxy')
    t.regex(status, /received-status=200/)
    const upstreamPort = new URL(house.upstream.origin).port
    t.regex(readFileSync(log, 'utf8'), new RegExp(`CONNECT 127\\.0\\.0\\.1:${upstreamPort} `))
  },
)

test('a proxy gets the account and the name, and its refusal is a 502', async (t) => {
  const proxy = await connectProxy(t)
  const house = await houseWith(
    t,
    settingsFor(proxy.url, {
      SVC_PROXY__CONNECT_TO: 'name',
      SVC_PROXY__USERNAME: 'svc',
      SVC_PROXY__PASSWORD: 'of the proxy',
      SVC_PROXY__NO_PROXY: NO_PROXY,
    }),
  )
  const { code, text } = await echoed(house)
  t.is(code, 200, text)
  const [request] = proxy.asked
  const { port } = new URL(house.upstream.origin)
  t.is(request?.url, `${UPSTREAM_NAME}:${port}`)
  const basic = Buffer.from('svc:of the proxy').toString('base64')
  t.is(request?.headers['proxy-authorization'], `Basic ${basic}`)
  t.is(house.upstream.requests.at(-1)?.headers['proxy-authorization'], undefined)

  // A host of no_proxy is reached without the proxy: the certificate of the upstream is for the other name.
  t.regex((await echoed(house, `direct.${NO_PROXY}`)).status, /error=tls_certificate_error/)
  t.is(proxy.asked.length, 1)

  proxy.refuse(407)
  const refused = await echoed(house, NAME_BEHIND)
  t.is(refused.code, 502, refused.text)
  t.regex(refused.status, /error=connection_refused/)
  t.is(proxy.asked.length, 2)
  proxy.end()
  const away = await echoed(house, NAME_BEHIND)
  t.is(away.code, 502, away.text)
  t.regex(away.status, /error=connection_refused/)
})

test('a name with a private address is refused before the proxy is asked', async (t) => {
  const proxy = await connectProxy(t)
  const house = await houseWith(
    t,
    settingsFor(proxy.url, {
      SVC_PROXY__CONNECT_TO: 'name',
      SVC_VAULT__EGRESS_ALLOW_PRIVATE_NETWORKS: 'false',
    }),
  )
  const { code, status } = await echoed(house)
  t.is(code, 403)
  t.regex(status, /error=http_request_denied/)
  t.is(proxy.asked.length, 0)
})
