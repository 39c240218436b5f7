/**
 * Request smuggling: requests that two servers could interpret differently, with the case names of Http11Probe. A case passes
 * if it is refused or the connection is closed, and the canary request after it is never executed.
 */
import test from 'ava'
import { sendRaw, statuses } from './raw.js'
import { isUws, NODE_PARSED, onEachTransport, type OnTransport, UWS_PARSED } from './stage.js'

const HOST = 'Host: id.test\r\n'
const canary = (name: string) => `DELETE /things/${name} HTTP/1.1\r\n${HOST}\r\n`
const post = (headers: string, body: string) =>
  `POST /echo HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n${headers}\r\n${body}`
const get = (headers: string) => `GET /hello HTTP/1.1\r\n${HOST}${headers}\r\n`
const chunked = (body: string) => post('Transfer-Encoding: chunked\r\n', body)

/** Each is followed by the canary in the same segment, and again in a separate one. */
const CASES: readonly (readonly [name: string, request: string])[] = [
  ['SMUG-DUPLICATE-CL', post('Content-Length: 2\r\nContent-Length: 0\r\n', '{}')],
  ['SMUG-DUPLICATE-CL-SAME', post('Content-Length: 2\r\nContent-Length: 2\r\n', '{}')],
  ['SMUG-CL-COMMA-SAME', post('Content-Length: 2, 2\r\n', '{}')],
  ['SMUG-CL-COMMA-DIFFERENT', post('Content-Length: 2, 0\r\n', '{}')],
  ['SMUG-CL-PLUS', post('Content-Length: +2\r\n', '{}')],
  ['SMUG-CL-NEGATIVE', post('Content-Length: -2\r\n', '{}')],
  ['SMUG-CL-HEX', post('Content-Length: 0x2\r\n', '{}')],
  ['SMUG-CL-EMPTY', post('Content-Length: \r\n', '{}')],
  ['SMUG-CL-OVERFLOW', post('Content-Length: 18446744073709551618\r\n', '{}')],
  ['SMUG-CL-TE-BOTH', post('Content-Length: 4\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n')],
  ['SMUG-TE-CL-BOTH', post('Transfer-Encoding: chunked\r\nContent-Length: 4\r\n', '0\r\n\r\n')],
  ['SMUG-TE-XCHUNKED', post('Transfer-Encoding: xchunked\r\n', '0\r\n\r\n')],
  ['SMUG-TE-GZIP-CHUNKED', post('Transfer-Encoding: gzip, chunked\r\n', '0\r\n\r\n')],
  ['SMUG-TE-CHUNKED-GZIP', post('Transfer-Encoding: chunked, gzip\r\n', '0\r\n\r\n')],
  ['SMUG-TE-IDENTITY', post('Transfer-Encoding: identity\r\n', '')],
  [
    'SMUG-TE-DUPLICATE',
    post('Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n', '0\r\n\r\n'),
  ],
  ['SMUG-TE-OBS-FOLD', post('Transfer-Encoding:\r\n chunked\r\n', '0\r\n\r\n')],
  ['SMUG-TE-SPACE-BEFORE-COLON', post('Transfer-Encoding : chunked\r\n', '0\r\n\r\n')],
  ['SMUG-CHUNK-LF-TERM', chunked('d\n{"text":"run"}\n0\n\n')],
  ['SMUG-CHUNK-EXT-LF', chunked('d;x=1\n{"text":"run"}\r\n0\r\n\r\n')],
  ['SMUG-CHUNK-SPILL', chunked('5\r\n{"text":"run"}\r\n0\r\n\r\n')],
  ['SMUG-CHUNK-NEGATIVE', chunked('-1\r\n{}\r\n0\r\n\r\n')],
  ['SMUG-CHUNK-HEX-PREFIX', chunked('0x2\r\n{}\r\n0\r\n\r\n')],
  ['MAL-CHUNK-SIZE-OVERFLOW', chunked('fffffffffffffffff\r\n{}\r\n0\r\n\r\n')],
  ['MAL-CHUNK-SIZE-LETTERS', chunked('zz\r\n{}\r\n0\r\n\r\n')],
  ['RFC9112-DUPLICATE-HOST', get('Host: evil.test\r\n')],
  ['RFC9112-DUPLICATE-HOST-SAME', get(HOST)],
  ['DUPLICATE-AUTHORIZATION', get('Authorization: Bearer good\r\nAuthorization: Bearer b\r\n')],
  ['DUPLICATE-CONTENT-TYPE', get('Content-Type: a/b\r\nContent-Type: c/d\r\n')],
  ['RFC9112-NO-HOST', 'GET /hello HTTP/1.1\r\n\r\n'],
  ['MAL-METHOD-AT', `G@T /hello HTTP/1.1\r\n${HOST}\r\n`],
  ['MAL-METHOD-LOWER', `get /hello HTTP/1.1\r\n${HOST}\r\n`],
  ['MAL-HEADER-NO-COLON', get('Nonsense\r\n')],
  ['MAL-HEADER-SPACE-IN-NAME', get('X Y: value\r\n')],
  ['MAL-HEADER-OBS-FOLD', get('X-A: one\r\n two\r\n')],
  ['MAL-HEADER-NUL', get('X-A: a\0b\r\n')],
  ['MAL-HEADER-BARE-CR', get('X-A: a\rb\r\n')],
  ['MAL-HTTP-VERSION', `GET /hello HTTP/9.9\r\n${HOST}\r\n`],
  ['MAL-NO-VERSION', 'GET /hello\r\n\r\n'],
  ['MAL-BINARY', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
]

const TRANSPORTS = [...UWS_PARSED, ...NODE_PARSED] as const
/** Until the first answer, or the end of the connection. */
const FIRST = { withinMs: 60_000, answers: 1 }
/** The tests of a transport share a stage: the canary has the name of its test. */
const define = ({ transport, stage: opened }: OnTransport) => {
  for (const [name, request] of CASES) {
    test(`${transport}: ${name}`, async (t) => {
      const stage = opened()
      for (const parts of [[request + canary(name)], [request, canary(name)]]) {
        const reply = await sendRaw(stage, parts)
        t.false(stage.notes.ran.includes(`remove ${name}`), `${parts.length} parts: ${reply.text}`)
        const [first] = statuses(reply)
        t.true(
          first === undefined || first >= 400 || harmless(name, first),
          `it was answered ${first}`,
        )
      }
    })
  }

  test(`${transport}: a good request behind a good one on the same connection is answered`, async (t) => {
    const limits = { gapMs: 150, withinMs: 60_000, answers: 2 }
    const reply = await sendRaw(opened(), [get(''), get('')], limits)
    t.deepEqual(statuses(reply), [200, 200])
    t.false(reply.closed)
  })

  // node:http parses chunked bodies strictly, so the connection can be used again.
  test(`${transport}: a chunked body is read${isUws(transport) ? ' and ends the connection' : ''}`, async (t) => {
    const stage = opened()
    const request = chunked('f\r\n{"text":"good"}\r\n0\r\n\r\n')
    const limits = { withinMs: 60_000, ...(isUws(transport) ? {} : { answers: 1 }) }
    const reply = await sendRaw(stage, request, limits)
    t.deepEqual(statuses(reply), [201])
    t.is(stage.notes.ran.filter((what) => what === 'good').length, 1)
    t.is(reply.closed, isUws(transport))
  })

  for (const [name, request, expected] of [
    ['MAL-URL-PERCENT-CRLF', 'GET /things/%0d%0ax:y HTTP/1.1', 405],
    ['MAL-URL-BACKSLASH', 'GET /hello\\..\\x HTTP/1.1', 400],
    ['MAL-URL-FRAGMENT', 'GET /hello#x HTTP/1.1', 400],
    ['MAL-URL-DOT-SEGMENTS', 'GET /x/../hello HTTP/1.1', 404],
    ['MAL-URL-DOUBLE-SLASH', 'GET //hello HTTP/1.1', 404],
    ['MAL-URL-ENCODED-SLASH', 'GET /%2fhello HTTP/1.1', 404],
    ['MAL-URL-LONG', `GET /${'a'.repeat(17_000)} HTTP/1.1`, 414],
    ['MAL-URL-LONGEST', `GET /${'a'.repeat(16_000)} HTTP/1.1`, 404],
    ['MAL-URL-NON-ASCII', 'GET /\xe4 HTTP/1.1', 400],
  ] as const) {
    test(`${transport}: ${name} is ${expected} or cut`, async (t) => {
      const reply = await sendRaw(opened(), `${request}\r\n${HOST}\r\n`, FIRST)
      const [status] = statuses(reply)
      if (status === undefined) t.true(reply.closed)
      else {
        t.is(status, expected)
        t.regex(reply.text, /x-request-id: [0-9a-f-]{36}/i)
      }
    })
  }

  test(`${transport}: MAL-MANY-HEADERS and a head of 70 kB are refused or cut`, async (t) => {
    const stage = opened()
    const many = Array.from({ length: 90 }, (_, at) => `X-${at}: v\r\n`).join('')
    for (const headers of [many, many.repeat(2), `X-Big: ${'b'.repeat(70_000)}\r\n`]) {
      const reply = await sendRaw(stage, get(headers) + canary('many'))
      const [status] = statuses(reply)
      t.true(status === undefined || status === 431, `it was answered ${status}`)
      t.false(stage.notes.ran.includes('remove many'))
    }
  })
}
onEachTransport(test, {}, define, TRANSPORTS)

/** Cases that all servers interpret the same way, with a fully consumed body. */
function harmless(name: string, status: number): boolean {
  return name === 'SMUG-CHUNK-LF-TERM' && status === 201
}
