/** An outbound proxy of tests, and egress calls that go through it. */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { ExecutionContext } from 'ava'
import { bodyCall, type EgressHouse, egressHouse, settingOf, UPSTREAM_NAME } from './egress.js'

/** The refusal of POST /v1/proxy/body for a call to a name of the upstream, or its answer. */
export async function echoed(house: EgressHouse, name = UPSTREAM_NAME) {
  const setting = await settingOf(house, { allowed_hosts: [name] })
  const answer = await house.send('/v1/proxy/body', {
    token: setting.delegated,
    headers: bodyCall(setting, `${house.upstream.origin.replace(UPSTREAM_NAME, name)}/echo`),
    body: 'through the proxy',
  })
  const status = String(answer.headers['proxy-status'])
  return { code: answer.statusCode, status, text: await answer.body.text() }
}

/** A service that calls through a proxy. */
export async function houseBehind(
  t: ExecutionContext,
  url: string,
  more: Readonly<Record<string, string>> = {},
): Promise<EgressHouse> {
  const environment = { SVC_PROXY__ENABLED: 'true', SVC_PROXY__URL: url, ...more }
  const house = await egressHouse({ environment })
  t.teardown(() => house.end())
  return house
}

export interface ConnectProxy {
  readonly url: string
  /** The CONNECT requests, in order. */
  readonly asked: IncomingMessage[]
  /** From now on it refuses with this status. */
  refuse(status: number): void
  end(): void
}

/** A proxy that connects every name to loopback, or answers with a status. */
export async function connectProxy(t: ExecutionContext): Promise<ConnectProxy> {
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
