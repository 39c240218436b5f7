/** The origin for the `htu` check of DPoP proofs (RFC 9449 section 4.3). */
import test from 'ava'
import { clientAddresses } from '../../gateway/request/client-address.js'
import { HeadCheck } from '../../gateway/request/request-smuggling-guard.js'
import { requestOrigin } from '../../gateway/request/request-origin.js'

type More = {
  readonly allowedHosts?: readonly string[]
  readonly port?: number
  readonly secure?: boolean
  readonly forwarded?: string
}
const origin = (
  issuer: string,
  host: string,
  { allowedHosts = [], port = 8080, secure = false, forwarded = '' }: More,
) => {
  const headers = new HeadCheck()
  if (forwarded !== '') headers.add('x-forwarded-proto', forwarded)
  const of = requestOrigin({
    issuer: new URL(issuer),
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
