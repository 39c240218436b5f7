import test from 'ava'
import { copyMessage, discardMessage, NotPlainData } from '../../../runtime/kernel/envelope.js'
import { bytePipe } from '../../../runtime/kernel/stream.js'
import { SharedText } from '../../../runtime/kernel/text/shared-text.js'

class Money {
  readonly cents = 1
}
const circle: { self?: unknown } = {}
circle.self = circle

for (const [what, value, complaint] of [
  ['a function', { on: () => {} }, 'message.on is a function'],
  ['a symbol', [Symbol('s')], 'message[0] is a symbol'],
  ['a class instance', { price: new Money() }, 'message.price is a Money'],
  ['a Map', { m: new Map() }, 'message.m is a Map'],
  ['an error', { e: new Error('no') }, 'message.e is a Error'],
  [
    'a member named __proto__',
    JSON.parse('{"__proto__":{}}'),
    'message has a member named __proto__',
  ],
] as const) {
  test(`${what} is not plain data`, (t) => {
    t.throws(() => copyMessage(value), { instanceOf: NotPlainData, message: complaint })
  })
}

test('a cycle is detected', (t) => {
  t.throws(() => copyMessage(circle), { message: /nested too deeply or in a cycle$/ })
})

test('a shared text keeps its identity in a copy', (t) => {
  const shared = new SharedText('text')
  t.is(copyMessage({ shared }).shared, shared)
})

test('a copy shares nothing with the original, except for streams', (t) => {
  const { stream } = bytePipe()
  const message = { bytes: Uint8Array.of(1), when: new Date(5), list: [{ a: 1 }], stream }
  const copy = copyMessage(message)
  t.is(copy.stream, stream)
  t.deepEqual({ ...copy, stream: 0 }, { ...message, stream: 0 })
  t.not(copy.bytes, message.bytes)
  t.not(copy.when, message.when)
  t.not(copy.list[0], message.list[0])
})

test('the streams of a discarded message are cancelled', (t) => {
  const { stream, writer } = bytePipe()
  discardMessage({ tag: 'ok', deep: [{ stream }], bytes: new Uint8Array(10) })
  t.false(writer.open)
})
