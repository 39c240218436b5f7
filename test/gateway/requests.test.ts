/** Parts of a request: its id, its origin, members that no schema knows. */
import test from 'ava'
import { z } from 'zod'
import { unknownMembers, warningsHeader } from '../../gateway/body/unknown-members.js'
import { clientAddresses } from '../../gateway/request/client-address.js'
import { RequestIds } from '../../gateway/request/request-ids.js'
import { requestOrigin } from '../../gateway/request/request-origin.js'
import { HeadCheck } from '../../gateway/request/request-smuggling-guard.js'
import { systemRandom } from '../../runtime/kernel/random.js'
import { heldClock } from '../support/held-clock.js'

/** A client's request id is kept if it is safe in logs and header fields. */
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const clock = heldClock(new Date('2030-01-01T00:00:00.123Z'))
const ids = new RequestIds(clock, systemRandom(clock))

for (const [received, kept] of [
  ['abc-DEF_0.9', true],
  ['x'.repeat(128), true],
  ['x'.repeat(129), false],
  ['', false],
  ['with space', false],
  ['line\nbreak', false],
  ['ünicode', false],
  [undefined, false],
] as const) {
  test(`a request id ${JSON.stringify(received)?.slice(0, 20)} (${received?.length ?? 0}) is ${kept ? 'kept' : 'replaced'}`, (t) => {
    const id = ids.idOf(received, clock.monotonicMs())
    if (kept) t.is(id, received)
    else t.regex(id, UUID_V7)
  })
}

/** The origin for the `htu` check of DPoP proofs (RFC 9449 section 4.3). */
type More = {
  readonly allowedHosts?: readonly string[]
  readonly port?: number
  readonly secure?: boolean
  readonly forwarded?: string
  readonly egress?: string
}
const origin = (
  issuer: string,
  host: string,
  { allowedHosts = [], port = 8080, secure = false, forwarded = '', egress = issuer }: More,
) => {
  const headers = new HeadCheck()
  if (forwarded !== '') headers.add('x-forwarded-proto', forwarded)
  const of = requestOrigin({
    issuer: new URL(issuer),
    egress: new URL(egress),
    baseDomain: issuer.startsWith('http:') ? 'localhost' : 'tenants.test',
    allowedHosts,
    port,
    addresses: clientAddresses(['10.0.0.0/8']),
  })
  return of({ host, secure, headers, peerAddress: '10.1.2.3' })
}

const PUBLIC = 'https://id.test'
const LOCAL = 'http://localhost:8080'

// biome-ignore format: a table
const CASES: readonly (readonly [title: string, issuer: string, host: string, expected: string, more: More])[] = [
  ['the issuer', PUBLIC, 'id.test', PUBLIC, {}],
  ['the issuer with its default port', PUBLIC, 'id.test:443', PUBLIC, {}],
  ['the issuer behind a proxy without TLS', PUBLIC, 'id.test', PUBLIC, { forwarded: 'http' }],
  ['a foreign host', PUBLIC, 'evil-rs.example', PUBLIC, {}],
  ['a foreign host that a proxy forwards', PUBLIC, 'evil-rs.example', PUBLIC, { forwarded: 'http' }],
  ['another port of the issuer', PUBLIC, 'id.test:8443', PUBLIC, {}],
  ['the name of a backend', PUBLIC, 'svc-0.svc.cluster:8080', PUBLIC, {}],
  ['the egress address', PUBLIC, 'id.test:8081', 'https://id.test:8081', { egress: 'https://id.test:8081' }],
  ['the egress address behind a proxy', PUBLIC, 'egress.test', 'https://egress.test', { egress: 'https://egress.test', forwarded: 'https' }],
  ['the egress address of a local run', LOCAL, 'localhost:8081', 'http://localhost:8081', { egress: 'http://localhost:8081' }],
  ['the issuer on the egress listener', LOCAL, 'localhost:8080', LOCAL, { egress: 'http://localhost:8081', port: 8081 }],
  ['a loopback name on the egress listener', LOCAL, '127.0.0.1:8081', 'http://127.0.0.1:8081', { egress: 'http://localhost:8081', port: 8081 }],
  ['a foreign port of the egress host', PUBLIC, 'egress.test:1', PUBLIC, { egress: 'https://egress.test' }],
  ['a tenant host', PUBLIC, 'acme.tenants.test', 'https://acme.tenants.test', {}],
  ['a tenant host at a foreign port', PUBLIC, 'acme.tenants.test:9999', 'https://acme.tenants.test', {}],
  ['two labels below the base domain', PUBLIC, 'evil.acme.tenants.test', PUBLIC, {}],
  ['a listed host', PUBLIC, 'old.test', 'https://old.test', { allowedHosts: ['old.test'], secure: true }],
  ['a listed host with another case and port', PUBLIC, 'old.test:8443', 'https://old.test:8443', { allowedHosts: ['OLD.test'], secure: true }],
  ['a host listed with a port', PUBLIC, 'old.test:1', PUBLIC, { allowedHosts: ['old.test:2'], secure: true }],
  ['localhost', LOCAL, 'localhost:8080', LOCAL, {}],
  ['another loopback name', LOCAL, '127.0.0.1:8080', 'http://127.0.0.1:8080', {}],
  ['IPv6 loopback', LOCAL, '[::1]:8080', 'http://[::1]:8080', {}],
  ['another process of the machine', LOCAL, 'localhost:8081', 'http://localhost:8081', { port: 8081 }],
  ['a foreign port of loopback', LOCAL, '127.0.0.1:9999', LOCAL, {}],
  ['loopback where hosts are listed', LOCAL, '127.0.0.1:8080', LOCAL, { allowedHosts: ['localhost'] }],
  ['a local tenant host', LOCAL, 'acme.localhost:8080', 'http://acme.localhost:8080', {}],
]
for (const [title, issuer, host, expected, more] of CASES) {
  test(`${title}: ${host} is ${expected}`, (t) => t.is(origin(issuer, host, more), expected))
}

const Nested = z.object({
  name: z.string(),
  tags: z.array(z.object({ key: z.string() })).default([]),
  limits: z.object({ bytes: z.int() }).optional(),
  anything: z.record(z.string(), z.unknown()).nullable().optional(),
  loose: z.looseObject({ a: z.string() }).optional(),
  either: z.union([z.string(), z.object({ x: z.int() }), z.object({ y: z.int() })]).optional(),
  both: z.intersection(z.object({ l: z.int() }), z.object({ r: z.int() })).optional(),
  made: z.preprocess((value) => value, z.object({ inner: z.int() })).optional(),
  turned: z
    .object({ given: z.string() })
    .transform(({ given }) => ({ other: given }))
    .optional(),
})

for (const [title, value, expected] of [
  ['nothing', { name: 'x', tags: [{ key: 'k' }], limits: { bytes: 1 } }, []],
  ['a member of the body', { name: 'x', nmae: 1 }, ['/nmae']],
  ['a member of a list', { tags: [{ key: 'k' }, { kee: 'k' }] }, ['/tags/1/kee']],
  ['a member of an object in it', { limits: { bites: 1 } }, ['/limits/bites']],
  ['nothing of a record, a loose object', { anything: { q: 1 }, loose: { b: 1 } }, []],
  ['nothing of an alternative', { either: { y: 1 } }, []],
  ['a member that no alternative knows', { either: { x: 1, z: 1 } }, ['/either/z']],
  ['nothing of both sides', { both: { l: 1, r: 1 } }, []],
  ['a member that neither side knows', { both: { l: 1, q: 1 } }, ['/both/q']],
  ['a member behind preprocess', { made: { outer: 1 } }, ['/made/outer']],
  [
    'what was sent, not what it is turned into',
    { turned: { given: 'x', other: 1 } },
    ['/turned/other'],
  ],
  ['a name with a slash and a tilde', { 'a/b~c': 1 }, ['/a~1b~0c']],
  ['names of every object', { constructor: 1, toString: 1 }, ['/constructor', '/toString']],
  ['nothing of what is no object', 7, []],
] as const) {
  test(`unknown members: ${title}`, (t) => {
    t.deepEqual(unknownMembers(Nested, value), expected)
  })
}

test('unknown members: ten at most, and each name is cut and made safe for a header', (t) => {
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`m${at}`, at]))
  const named = unknownMembers(Nested, many)
  t.is(named.length, 10)
  t.is(warningsHeader(named).split(', ').length, 10)
  const evil = ['/a"\r\nset-cookie: x=1', `/${'n'.repeat(500)}`, '/\u0000ü😀', '/a, b;c="d"']
  const value = warningsHeader(evil)
  t.regex(value, /^[ -~]+$/)
  for (const one of value.split(', ')) {
    t.regex(one, /^unknown-member;pointer="#[A-Za-z0-9_.~/?-]{1,64}"$/)
  }
})
