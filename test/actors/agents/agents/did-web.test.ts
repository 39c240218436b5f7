import test from 'ava'
import * as fc from 'fast-check'
import { documentFault, readDidWeb } from '../../../../actors/agents/agents/did-web.js'
import { createAgentKey } from '../../../../runtime/clients/client/agent.js'

const DID = 'did:web:agents.example:one'
const NOW = Date.parse('2026-01-02T03:04:05Z')

for (const [did, url] of [
  ['did:web:w3c-ccg.example', 'https://w3c-ccg.example/.well-known/did.json'],
  ['did:web:a.example:user:alice', 'https://a.example/user/alice/did.json'],
  ['did:web:a.example%3A3000:user', 'https://a.example:3000/user/did.json'],
  ['did:web:xn--bcher-kva.example', 'https://xn--bcher-kva.example/.well-known/did.json'],
  ['did:web:a.example:V1.2_x-y', 'https://a.example/V1.2_x-y/did.json'],
] as const) {
  test(`${did} has the document URL ${url}`, (t) => {
    t.deepEqual(readDidWeb(did), { tag: 'did_web', url })
  })
}

const MALFORMED = [
  '',
  'did:web:',
  'did:key:z6MkUnknown',
  'DID:web:a.example',
  'did:Web:a.example',
  'https://a.example',
  'did:web:A.example',
  'did:web:bücher.example',
  'did:web:a_b.example',
  'did:web:-a.example',
  'did:web:a..example',
  'did:web:a.example.',
  'did:web:.a.example',
  'did:web:127.0.0.1',
  'did:web:2130706433',
  'did:web:0x7f000001',
  'did:web:a.0x7f',
  'did:web:[::1]',
  'did:web:%5B%3A%3A1%5D',
  'did:web:user@a.example',
  'did:web:user%40a.example',
  'did:web:a.example%3A',
  'did:web:a.example%3a8443',
  'did:web:a.example%3A0',
  'did:web:a.example%3A443',
  'did:web:a.example%3A08443',
  'did:web:a.example%3A65536',
  'did:web:a.example%3A8443%3A1',
  'did:web:a.example%2Fpath',
  'did:web:a.example/path',
  'did:web:a.example?x',
  'did:web:a.example#key',
  'did:web:a.example:',
  'did:web:a.example::b',
  'did:web:a.example:.',
  'did:web:a.example:..',
  'did:web:a.example:%2e%2e:b',
  'did:web:a.example:b%2Fc',
  'did:web:a.example:b\\c',
  'did:web:a.example:b\nc',
  'did:web: a.example',
  `did:web:a.example:${'b'.repeat(256)}`,
  `did:web:${'a'.repeat(64)}.example`,
]
for (const did of MALFORMED) {
  test(`${JSON.stringify(did).slice(0, 60)} is malformed`, (t) => {
    t.is(readDidWeb(did).tag, 'malformed')
  })
}

test('property: a DID has one document URL, which determines the DID', (t) => {
  const label = fc.stringMatching(/^[a-z](?:[a-z0-9]{0,8}[a-z])?$/)
  const segment = fc.stringMatching(/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,8}$/)
  const port = fc.option(fc.integer({ min: 1, max: 65_535 }).filter((each) => each !== 443))
  const hosts = fc.array(label, { minLength: 2, maxLength: 4 })
  fc.assert(
    fc.property(hosts, port, fc.array(segment, { maxLength: 4 }), (labels, number, path) => {
      const authority = labels.join('.') + (number === null ? '' : `%3A${number}`)
      const reading = readDidWeb(['did:web', authority, ...path].join(':'))
      if (reading.tag !== 'did_web') throw new Error(reading.detail)
      const { hostname, port: read, pathname, protocol, href } = new URL(reading.url)
      t.is(href, reading.url)
      t.is(protocol, 'https:')
      t.is(hostname, labels.join('.'))
      t.is(read, number === null ? '' : String(number))
      const where = path.length === 0 ? ['.well-known'] : path
      t.deepEqual(pathname.split('/'), ['', ...where, 'did.json'])
    }),
  )
})

test('property: every accepted DID yields an https URL of the host it names', (t) => {
  const pieces = fc.constantFrom(
    ...'aZ9.:%/\\@#?-_[ \t\0é',
    ...'.. %3A %2F %2e example .com 127.0.0.1 0x7f 8443 xn--'.split(' '),
  )
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
      const did = `did:web:${parts.join('')}`
      const reading = readDidWeb(did)
      if (reading.tag === 'malformed') return
      const url = new URL(reading.url)
      t.is(url.href, reading.url)
      t.is(url.protocol, 'https:')
      t.is(url.hostname, /^did:web:([^:%]*)/.exec(did)?.[1] ?? '')
      t.is(url.username + url.password + url.search + url.hash, '')
    }),
    { numRuns: 2_000 },
  )
})

const jwkOf = (key: ReturnType<typeof createAgentKey>) => ({ publicKeyJwk: { ...key.publicJwk } })
const multibaseOf = (key: ReturnType<typeof createAgentKey>) => ({
  publicKeyMultibase: key.did.slice('did:key:'.length),
})

for (const algorithm of ['ed25519', 'es256'] as const) {
  const key = createAgentKey(algorithm)
  const sought = { jwk: key.publicJwk, did: key.did }
  const fault = (document: unknown) => documentFault(document, DID, sought, NOW)
  const UNLISTED = 'whose document does not list public_key under authentication'

  for (const [form, spelled] of [
    ['publicKeyJwk', jwkOf(key)],
    ['publicKeyMultibase', multibaseOf(key)],
  ] as const) {
    test(`${algorithm}: a key as ${form} is found by reference and embedded`, (t) => {
      const method = { id: `${DID}#key`, type: 'JsonWebKey', controller: DID, ...spelled }
      const verificationMethod = [{ id: `${DID}#other` }, method]
      for (const document of [
        { id: DID, verificationMethod, authentication: [`${DID}#key`] },
        { id: DID, verificationMethod, authentication: ['#key'] },
        {
          id: DID,
          verificationMethod: [{ ...method, id: '#key' }],
          authentication: [`${DID}#key`],
        },
        { id: DID, authentication: ['did:web:elsewhere#key', method] },
        { id: DID, authentication: [{ ...method, expires: '2026-01-02T03:04:06Z' }] },
      ]) {
        t.is(fault(document), undefined, JSON.stringify(document))
      }
    })

    test(`${algorithm}: a key as ${form} that does not authenticate is not found`, (t) => {
      const method = { id: `${DID}#key`, type: 'JsonWebKey', controller: DID, ...spelled }
      const verificationMethod = [method]
      for (const document of [
        { id: DID },
        { id: DID, verificationMethod },
        { id: DID, verificationMethod, authentication: `${DID}#key` },
        { id: DID, verificationMethod, authentication: [`${DID}#other`] },
        { id: DID, verificationMethod, authentication: ['did:web:elsewhere#key'] },
        { id: DID, verificationMethod, assertionMethod: ['#key'], authentication: [] },
        { id: DID, authentication: [{ ...method, expires: '2026-01-02T03:04:05Z' }] },
        { id: DID, authentication: [{ ...method, revoked: '2020-01-01T00:00:00Z' }] },
        { id: DID, authentication: [{ ...method, revoked: 'never' }] },
        { id: DID, authentication: [{ ...method, ...jwkOf(createAgentKey(algorithm)) }, null, 7] },
      ]) {
        t.is(fault(document), UNLISTED, JSON.stringify(document))
      }
    })
  }

  test(`${algorithm}: a key with a published private key is not found`, (t) => {
    const { publicKeyJwk } = jwkOf(key)
    const method = { id: '#key', publicKeyJwk: { ...publicKeyJwk, d: 'AA' } }
    t.is(fault({ id: DID, authentication: [method] }), UNLISTED)
  })

  test(`${algorithm}: the document of another DID and an invalid document have their own faults`, (t) => {
    const authentication = [{ id: '#key', ...jwkOf(key) }]
    for (const id of [undefined, null, `${DID}/`, 'did:web:agents.example', [DID]]) {
      t.is(fault({ id, authentication }), 'whose document has another id')
    }
    for (const document of [null, [], 'x', 7, [{ id: DID, authentication }]]) {
      t.is(fault(document), 'whose document is not a JSON object')
    }
  })
}

test('property: no document makes it throw', (t) => {
  const key = createAgentKey()
  const sought = { jwk: key.publicJwk, did: key.did }
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (verificationMethod, authentication) => {
      const document = { id: DID, verificationMethod, authentication }
      t.not(documentFault(document, DID, sought, NOW), undefined)
    }),
  )
})
