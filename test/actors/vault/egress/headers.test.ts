import test from 'ava'
import { requestHeaders, responseHeaders } from '../../../../actors/vault/egress/relay/headers.js'
import type { HeaderPair } from '../../../../actors/vault/egress/protocol.js'

const AUTHORIZATION: HeaderPair = ['Authorization', 'Bearer the-secret']

for (const name of [
  'Host',
  'Content-Length',
  'Connection',
  'Keep-Alive',
  'Proxy-Authorization',
  'Proxy-Connection',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'Expect',
  'Forwarded',
  'X-Forwarded-For',
  'X-Forwarded-Host',
  'Via',
  'Cookie',
  'x-svc-method',
  'X-SVC-anything',
]) {
  test(`the caller's ${name} is not relayed`, (t) => {
    t.deepEqual(
      requestHeaders(
        [
          [name, '1'],
          ['Accept', '*/*'],
        ],
        null,
      ),
      {
        tag: 'headers',
        headers: [['accept', '*/*']],
      },
    )
  })
}

test('fields that Connection names are not relayed', (t) => {
  const sent: HeaderPair[] = [
    ['Connection', 'close, X-Secret-Hop'],
    ['X-Secret-Hop', '1'],
    ['X-Stays', '1'],
  ]
  t.deepEqual(requestHeaders(sent, null), { tag: 'headers', headers: [['x-stays', '1']] })
})

test('the credential is injected last, under its own name', (t) => {
  t.deepEqual(requestHeaders([['X-A', '1']], AUTHORIZATION), {
    tag: 'headers',
    headers: [
      ['x-a', '1'],
      ['authorization', 'Bearer the-secret'],
    ],
  })
})

test('Connection cannot remove the credential', (t) => {
  const verdict = requestHeaders([['Connection', 'authorization']], AUTHORIZATION)
  t.deepEqual(verdict, { tag: 'headers', headers: [['authorization', 'Bearer the-secret']] })
})

for (const [name, injected] of [
  ['authorization', 'Authorization'],
  ['AUTHORIZATION', 'authorization'],
  ['X-Api-Key', 'x-api-key'],
  ['x_api_key', 'x-api-key'],
  ['x-api-key', 'X_API_KEY'],
] as const) {
  test(`the caller's ${name} with an injected ${injected} is refused`, (t) => {
    t.deepEqual(requestHeaders([[name, 'mine']], [injected, 'secret']), {
      tag: 'refused',
      fault: 'header_duplicates_injected',
      name,
    })
  })
}

for (const [title, pair, fault] of [
  ['CR LF in a value', ['x', 'a\r\nhost: b'], 'header_value'],
  ['a lone LF in a value', ['x', 'a\nb'], 'header_value'],
  ['NUL in a value', ['x', 'a\0b'], 'header_value'],
  ['a character beyond latin1', ['x', '€'], 'header_value'],
  ['an empty name', ['', 'a'], 'header_name'],
  ['a space in a name', ['x y', 'a'], 'header_name'],
  ['a colon in a name', ['x:', 'a'], 'header_name'],
  ['LF in a name', ['x\n', 'a'], 'header_name'],
  ['a name beyond ASCII', ['é', 'a'], 'header_name'],
] as const) {
  test(`${title} is refused, sent or injected`, (t) => {
    const refused = { tag: 'refused', fault, name: pair[0] } as const
    t.deepEqual(requestHeaders([pair], null), refused)
    t.deepEqual(requestHeaders([], pair), refused)
  })
}

test('only allowed response headers are relayed', (t) => {
  const headers = responseHeaders({
    'content-type': 'text/plain',
    'set-cookie': ['a=1', 'b=2'],
    'www-authenticate': 'Basic',
    'strict-transport-security': 'max-age=1',
    'alt-svc': 'h3',
    'access-control-allow-origin': '*',
    server: 'x',
    'content-length': '5',
    'transfer-encoding': 'chunked',
    'x-request-id': 'upstream-id',
    'x-ratelimit-limit': '10',
    'x-svc-upstream-request-id': 'forged',
    vary: ['accept', 'origin'],
    etag: 'with\nline feed',
  })
  t.deepEqual(headers, [
    ['content-type', 'text/plain'],
    ['x-svc-upstream-request-id', 'upstream-id'],
    ['x-ratelimit-limit', '10'],
    ['vary', 'accept'],
    ['vary', 'origin'],
  ])
})
