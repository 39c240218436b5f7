import { once } from 'node:events'
import type { LookupAddress } from 'node:dns'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import test, { type ExecutionContext } from 'ava'
import { isPublicAddress } from '../../../../actors/platform/outbound-http/addresses.js'
import {
  createDialer,
  type DialerOptions,
} from '../../../../actors/platform/outbound-http/dialer.js'
import { isOwnAddress } from '../../../../actors/platform/outbound-http/dialer.js'
import { judgeTarget } from '../../../../actors/platform/outbound-http/targets.js'
import {
  ALLOWED_ADDRESSES,
  ALLOWED_URLS,
  REFUSED_ADDRESSES,
  REFUSED_URLS,
} from './address-corpus.js'

const PUBLIC_ONLY = { nonStandardPorts: false, privateNetworks: false }

for (const address of REFUSED_ADDRESSES) {
  test(`"${address}" is not a public address`, (t) => {
    t.false(isPublicAddress(address))
  })
}

for (const address of ALLOWED_ADDRESSES) {
  test(`"${address}" is a public address`, (t) => {
    t.true(isPublicAddress(address))
  })
}

for (const [text, fault] of REFUSED_URLS) {
  test(`the URL ${JSON.stringify(text).slice(0, 70)} is refused as ${fault}`, (t) => {
    t.deepEqual(judgeTarget(text, PUBLIC_ONLY), { tag: 'refused', fault })
  })
}

for (const [text, host, path] of ALLOWED_URLS) {
  test(`the URL ${text} requests ${path} from ${host}`, (t) => {
    const verdict = judgeTarget(text, PUBLIC_ONLY)
    if (verdict.tag === 'refused') return t.fail(verdict.fault)
    t.is(verdict.url.host, host)
    t.is(verdict.url.pathname + verdict.url.search, path)
  })
}

test('other ports and local names need separate settings', (t) => {
  const judge = (text: string, nonStandardPorts: boolean, privateNetworks: boolean) =>
    judgeTarget(text, { nonStandardPorts, privateNetworks }).tag
  t.is(judge('https://example.com:8443/', true, false), 'target')
  t.is(judge('https://localhost:8443/', true, false), 'refused')
  t.is(judge('https://localhost:8443/', true, true), 'target')
  t.is(judge('https://127.0.0.1/', false, true), 'target')
  t.is(judge('http://localhost:8443/', true, true), 'refused')
  t.is(judge('https://example.com:0/', true, true), 'refused')
})

async function listening(t: ExecutionContext): Promise<{ port: number; accepted: () => number }> {
  let accepted = 0
  const server: Server = createServer((socket) => {
    accepted += 1
    socket.on('error', () => {})
    socket.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => new Promise<void>((resolve) => server.close(() => resolve())))
  return { port: (server.address() as AddressInfo).port, accepted: () => accepted }
}

function dial(hostname: string, port: number, options: Partial<DialerOptions> = {}) {
  const dialer = createDialer({ privateNetworks: false, dnsOverrides: {}, ...options })
  return new Promise<{ error: (Error & { code?: string }) | null; socket: Socket | null }>(
    (resolve) => {
      dialer({ hostname, protocol: 'http:', port: String(port) }, (error, socket) => {
        socket?.destroy()
        resolve({ error, socket })
      })
    },
  )
}

const answering = (...addresses: string[]) => ({
  resolve: (_: string, done: (error: Error | null, found: readonly LookupAddress[]) => void) => {
    const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
    setImmediate(() => done(null, found))
  },
})

for (const [title, hostname, options] of [
  ['a literal loopback address', '127.0.0.1', {}],
  ['a bracketed IPv6 literal', '[::1]', {}],
  ['an IPv6 literal', '::ffff:127.0.0.1', {}],
  ['a name that resolves to loopback', 'good.example', answering('127.0.0.1')],
  [
    'a name with one public and one private address',
    'a.example',
    answering('8.8.8.8', '127.0.0.1'),
  ],
  ['a name with a public A and a private AAAA', 'b.example', answering('8.8.8.8', 'fd00::1')],
  ['a name that resolves to the mapped loopback', 'c.example', answering('::ffff:127.0.0.1')],
  ['a name that resolves into NAT64', 'd.example', answering('64:ff9b::7f00:1')],
  ['an override to a private address', 'e.example', { dnsOverrides: { 'e.example': '127.0.0.1' } }],
] as const) {
  test(`${title} is refused before any connection`, async (t) => {
    const { port, accepted } = await listening(t)
    const { error } = await dial(hostname, port, options)
    t.is(error?.code, 'SVC_ADDRESS_REFUSED')
    // The error contains the name, but not the resolved address.
    t.true(error?.message.startsWith(`${hostname.replace(/^\[|\]$/g, '')} has no`))
    t.is(accepted(), 0)
  })
}

test('a public address of this machine is refused', async (t) => {
  const isOwn = (address: string) => address === '93.184.215.14'
  for (const [hostname, options] of [
    ['93.184.215.14', {}],
    ['self.example', answering('93.184.215.14')],
    ['self.example', answering('2606:4700:4700::1111', '93.184.215.14')],
  ] as const) {
    const { error } = await dial(hostname, 443, { ...options, isOwn })
    t.is(error?.code, 'SVC_ADDRESS_REFUSED')
  }
})

test('the addresses of the interfaces belong to this machine, mapped or not', (t) => {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  t.true(addresses.length > 0)
  for (const { address, family } of addresses) {
    t.true(isOwnAddress(address))
    if (family === 'IPv4') t.true(isOwnAddress(`::FFFF:${address}`))
  }
  t.false(isOwnAddress('93.184.215.14'))
  t.false(isOwnAddress(''))
})

test('a name without an address is not found', async (t) => {
  const { error } = await dial('none.example', 1, answering())
  t.is(error?.code, 'ENOTFOUND')
})

test('a name is resolved once per connection, which prevents DNS rebinding', async (t) => {
  const { port } = await listening(t)
  let asked = 0
  const resolve: DialerOptions['resolve'] = (_, done) => {
    asked += 1
    done(null, [{ address: '127.0.0.1', family: 4 }])
  }
  const { error } = await dial('rebinding.example', port, { privateNetworks: true, resolve })
  t.is(error, null)
  t.is(asked, 1)
})

test('an override can name a private address if those are allowed', async (t) => {
  const { port, accepted } = await listening(t)
  const dnsOverrides = { 'api.example': '127.0.0.1' }
  const { error } = await dial('api.example', port, { privateNetworks: true, dnsOverrides })
  t.is(error, null)
  while (accepted() === 0) await new Promise((resolve) => setImmediate(resolve))
  t.is(accepted(), 1)
})
