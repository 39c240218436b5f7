/** How many gateway threads a process has: `server.gateway_threads` and the machine. */
import test from 'ava'
import { loadSettings } from '../../../runtime/process/configuration/load-settings.js'
import { gatewayThreads, type Machine } from '../../../runtime/process/gateway-threads.js'

const NODE_20: Machine = { processors: 8, platform: 'linux', node: '20.20.2', hasNative: true }
const NODE_22: Machine = { ...NODE_20, node: '22.12.0' }
const UWS = { SVC_SERVER__HTTP1_PARSER: 'uwebsockets' }
const NODE = { SVC_SERVER__HTTP1_PARSER: 'node' }
const LARGE = {
  SVC_DATABASE__MAX_CONNECTIONS: '200',
  SVC_DATABASE__IDENTITY_MAX_CONNECTIONS: '50',
}

function threads(environment: Record<string, string>, machine: Machine) {
  const loaded = loadSettings({ environment, cwd: '/srv', readFile: none })
  if (loaded.tag === 'refused') throw new Error(JSON.stringify(loaded.failures))
  return gatewayThreads(loaded, machine)
}

function none(path: string): never {
  throw Object.assign(new Error(path), { code: 'ENOENT' })
}

for (const [what, environment, machine, count] of [
  ['one less than the processors', { ...UWS, ...LARGE }, NODE_20, 7],
  ['one on one processor', { ...UWS, ...LARGE }, { ...NODE_20, processors: 1 }, 1],
  ['four connections for each', UWS, NODE_20, 5],
  [
    'one identity connection for each',
    { ...UWS, ...LARGE, SVC_DATABASE__IDENTITY_MAX_CONNECTIONS: '3' },
    NODE_20,
    3,
  ],
  ['uWebSockets shares a port on loopback without a setting', LARGE, NODE_20, 7],
  ['one where node:http cannot share a port', { ...NODE, ...LARGE }, NODE_20, 1],
  ['one on another address', { ...LARGE, SVC_SERVER__HOST: '0.0.0.0' }, NODE_20, 1],
  [
    'one where the native parser is missing',
    { ...UWS, ...LARGE },
    { ...NODE_20, hasNative: false },
    1,
  ],
  ['node:http shares a port from Node.js 22.12', { ...NODE, ...LARGE }, NODE_22, 7],
  ['not from Node.js 22.11', { ...NODE, ...LARGE }, { ...NODE_22, node: '22.11.0' }, 1],
  ['not from Node.js 23.0', { ...NODE, ...LARGE }, { ...NODE_22, node: '23.0.0' }, 1],
  ['Node.js 24 shares a port', { ...NODE, ...LARGE }, { ...NODE_22, node: '24.0.1' }, 7],
  [
    'one where the kernel does not divide',
    { ...UWS, ...LARGE },
    { ...NODE_22, platform: 'darwin' },
    1,
  ],
  ['one on the async plane', { ...UWS, ...LARGE, SVC_RUNTIME_PLANE: 'async' }, NODE_20, 1],
] as const) {
  test(`auto: ${what}`, (t) => {
    t.deepEqual(threads(environment, machine), { tag: 'threads', count })
  })
}

test('a number is taken as it is, also above the processors', (t) => {
  const environment = { ...UWS, SVC_SERVER__GATEWAY_THREADS: '10' }
  t.deepEqual(threads(environment, { ...NODE_20, processors: 2 }), { tag: 'threads', count: 10 })
  const one = { SVC_SERVER__GATEWAY_THREADS: '1' }
  t.deepEqual(threads(one, { ...NODE_20, platform: 'darwin' }), { tag: 'threads', count: 1 })
})

for (const [what, environment, machine, reason] of [
  [
    'node:http',
    NODE,
    NODE_20,
    /http1_parser "node" needs Node\.js 22\.12 .*20\.20\.2.*"uwebsockets"/,
  ],
  [
    'HTTP/2',
    {
      SVC_SERVER__TRANSPORT: 'tls_h2_only',
      SVC_SERVER__TLS__CERT_PEM_PATH: '/cert',
      SVC_SERVER__TLS__KEY_PEM_PATH: '/key',
    },
    NODE_20,
    /transport tls_h2_only needs Node\.js 22\.12/,
  ],
  ['a missing native parser', UWS, { ...NODE_20, hasNative: false }, /native parser/],
  ['macOS', UWS, { ...NODE_22, platform: 'darwin' }, /darwin does not divide connections/],
  [
    'too few connections',
    { SVC_DATABASE__MAX_CONNECTIONS: '3' },
    NODE_22,
    /connections for 1: .*\(3\)/,
  ],
] as const) {
  test(`a number above 1 is refused: ${what}`, (t) => {
    const found = threads({ SVC_SERVER__GATEWAY_THREADS: '2', ...environment }, machine)
    t.is(found.tag, 'refused')
    if (found.tag === 'refused') t.regex(found.reason, reason)
  })
}
