/** The parser of JSON-RPC messages, with generated messages and a fixed seed. */
import test from 'ava'
import * as fc from 'fast-check'
import {
  MESSAGE_BYTES_MAX,
  parseMessage,
  resultText,
} from '../../../../gateway/apps/mcp/json-rpc.js'
import { errorText } from '../../../../gateway/response/json-rpc-errors.js'
import { runs } from '../../../support/runs.js'

const SEED = { seed: 20260728, numRuns: runs(500) }
const bytesOf = (value: unknown) => Buffer.from(JSON.stringify(value))

const id = fc.oneof(
  fc.string({ maxLength: 40 }).filter((text) => !text.includes('\0')),
  fc.maxSafeInteger(),
)
const name = fc.string({ minLength: 1, maxLength: 40 }).filter((text) => !text.includes('\0'))
const params = fc.dictionary(
  name.filter((key) => key !== '__proto__'),
  fc.oneof(fc.boolean(), fc.integer(), fc.constant(null), name),
)

test('a request keeps its id, method and params', (t) => {
  fc.assert(
    fc.property(id, name, params, (given, method, values) => {
      const parsed = parseMessage(
        bytesOf({ jsonrpc: '2.0', id: given, method, params: values, more: 1 }),
      )
      t.is(parsed.kind, 'request')
      if (parsed.kind !== 'request') return
      t.is(parsed.id, Object.is(given, -0) ? 0 : given)
      t.is(parsed.method, method)
      t.deepEqual({ ...parsed.params }, { ...values })
    }),
    SEED,
  )
})

test('a message without an id is a notification', (t) => {
  fc.assert(
    fc.property(name, fc.option(params, { nil: undefined }), (method, values) => {
      t.is(parseMessage(bytesOf({ jsonrpc: '2.0', method, params: values })).kind, 'notification')
    }),
    SEED,
  )
})

test('any bytes are parsed without an exception', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const parsed = parseMessage(bytes)
      t.is(parsed.kind, 'invalid')
    }),
    SEED,
  )
})

test('any JSON value is a message or has an error code', (t) => {
  const member = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constant('2.0'), id)
  const near = fc.record(
    {
      jsonrpc: fc.oneof(fc.constant('2.0'), member),
      id: member,
      method: member,
      params: member,
      result: member,
      error: member,
    },
    { requiredKeys: [] },
  )
  const request = fc.record({
    jsonrpc: fc.constant('2.0'),
    id: member,
    method: member,
    params: fc.oneof(params, member),
  })
  const seen = new Set<string>()
  fc.assert(
    fc.property(fc.oneof(near, request, fc.jsonValue()), (value) => {
      const text = JSON.stringify(value)
      const parsed = parseMessage(Buffer.from(text))
      seen.add(parsed.kind)
      const { jsonrpc, method, result, error } = Object(JSON.parse(text))
      if (parsed.kind === 'invalid') t.true(parsed.code === -32700 || parsed.code === -32600)
      else {
        t.is(jsonrpc, '2.0', text)
        t.is(typeof method === 'string', parsed.kind !== 'response', text)
        t.is(result !== undefined || error !== undefined, parsed.kind === 'response', text)
      }
    }),
    { ...SEED, numRuns: 3_000 },
  )
  t.deepEqual([...seen].toSorted(), ['invalid', 'notification', 'request', 'response'])
})

test('deep nesting is refused without recursion', (t) => {
  const half = Math.floor(MESSAGE_BYTES_MAX / 2) - 40
  const text = `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":${'['.repeat(half)}${']'.repeat(half)}}}`
  t.like(parseMessage(Buffer.from(text)), { kind: 'invalid', code: -32700 })
})

test('answers are JSON with the id of the request', (t) => {
  fc.assert(
    fc.property(id, name, (given, message) => {
      const expected = Object.is(given, -0) ? 0 : given
      t.deepEqual(JSON.parse(resultText(given, '{"a":1}')), {
        jsonrpc: '2.0',
        id: expected,
        result: { a: 1 },
      })
      t.deepEqual(JSON.parse(errorText(given, -1, message, { b: 2 })), {
        jsonrpc: '2.0',
        id: expected,
        error: { code: -1, message, data: { b: 2 } },
      })
    }),
    SEED,
  )
})
