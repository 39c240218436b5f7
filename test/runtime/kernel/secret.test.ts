import { Worker } from 'node:worker_threads'
import { once } from 'node:events'
import { inspect } from 'node:util'
import test from 'ava'
import { pino } from 'pino'
import { copyMessage } from '../../../runtime/kernel/envelope.js'
import { Secret, SecretWiped } from '../../../runtime/kernel/secret.js'

const TEXT = 'correct horse battery staple'

for (const [way, show] of [
  ['a template', (secret: Secret) => `${secret}`],
  ['a concatenation', (secret: Secret) => `x${String(secret)}`],
  ['JSON', (secret: Secret) => JSON.stringify({ nested: [{ secret }] })],
  ['inspect', (secret: Secret) => inspect({ secret }, { depth: 9, showHidden: true })],
  ['its own members', (secret: Secret) => JSON.stringify(Object.entries(secret))],
  ['a structured clone', (secret: Secret) => inspect(structuredClone({ secret }), { depth: 9 })],
  [
    'a log line',
    (secret: Secret) => {
      const lines: string[] = []
      pino({}, { write: (line: string) => lines.push(line) }).info({
        key: secret,
        inner: { secret },
      })
      return lines.join('')
    },
  ],
  [
    'an error',
    (secret: Secret) => {
      const error = Object.assign(new Error(`failed with ${secret}`), { secret })
      return `${error.stack}${inspect(error)}`
    },
  ],
] as const) {
  test(`${way} shows nothing of a secret`, (t) => {
    const shown = show(Secret.ofText(TEXT))
    t.false(shown.includes(TEXT))
    t.false(shown.includes(Buffer.from(TEXT).join(',')), 'not as numbers either')
  })
}

test('a secret cannot be put into a message', (t) => {
  t.throws(() => copyMessage({ deep: [{ key: Secret.ofText(TEXT) }] }), {
    message: 'message.deep[0].key is a Secret',
  })
})

test('a secret posted to a thread arrives empty', async (t) => {
  const worker = new Worker(
    `const { parentPort } = require('node:worker_threads')
     parentPort.on('message', (m) => parentPort.postMessage(require('node:util').inspect(m, { showHidden: true })))`,
    { eval: true },
  )
  worker.postMessage({ secret: Secret.ofText(TEXT) })
  const [seen] = (await once(worker, 'message')) as [string]
  t.is(seen, '{ secret: {} }')
  await worker.terminate()
})

test('open passes the bytes once and wipes them, also when the use throws', async (t) => {
  let kept: Uint8Array | undefined
  const secret = Secret.ofText(TEXT)
  const text = secret.open((bytes) => {
    kept = bytes
    return Buffer.from(bytes).toString()
  })
  t.is(text, TEXT)
  t.true(kept!.every((byte) => byte === 0))
  t.throws(() => secret.open(() => {}), { instanceOf: SecretWiped })

  const failing = Secret.ofText(TEXT)
  t.throws(() =>
    failing.open((bytes) => {
      kept = bytes
      throw new Error('no use')
    }),
  )
  t.true(kept!.every((byte) => byte === 0))
  t.true(failing.wiped)

  const slow = Secret.ofText(TEXT)
  const used = slow.open(async (bytes) => {
    await Promise.resolve()
    return Buffer.from(bytes).toString()
  })
  t.false(slow.wiped, 'not while it is in use')
  t.is(await used, TEXT)
  t.true(slow.wiped)
})

test('borrow keeps the secret', (t) => {
  const secret = Secret.take(Uint8Array.of(1, 2))
  t.is(
    secret.borrow((bytes) => bytes[1]),
    2,
  )
  t.is(
    secret.borrow((bytes) => bytes[0]),
    1,
  )
  secret.wipe()
  t.throws(() => secret.borrow(() => {}), { instanceOf: SecretWiped })
})

test("take wipes the caller's copy", (t) => {
  const bytes = Uint8Array.of(7, 7, 7)
  const secret = Secret.take(bytes)
  t.deepEqual(bytes, Uint8Array.of(0, 0, 0))
  t.deepEqual(
    secret.open((own) => [...own]),
    [7, 7, 7],
  )
})
