/** The secret is taken out however the answer is cut, and nothing else is; usage is read however it is cut. */
import test from 'ava'
import * as fc from 'fast-check'
import { createRedactor, Needles, REDACTED } from '../../../actors/egress/redaction.js'
import { createUsageReader } from '../../../actors/egress/usage.js'

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...at].map((from, index) => bytes.subarray(from, [...at, bytes.length][index]))
}

function redacted(secret: string, chunks: readonly Uint8Array[], scheme = 'bearer') {
  const redactor = createRedactor(new Needles(Buffer.from(secret), scheme))
  const parts = chunks.flatMap((chunk) => [...redactor.push(chunk)])
  const text = Buffer.concat([...parts, ...redactor.end()]).toString('latin1')
  return { text, count: redactor.count }
}

/** Few letters, so that a secret often overlaps with itself and with what stands around it. */
const letters = fc.stringMatching(/^[ab/+~]{6,12}$/)
const places = fc.array(fc.nat(), { maxLength: 40 })

test('a secret in any spelling is taken out wherever the chunks end', (t) => {
  fc.assert(
    fc.property(
      letters,
      fc.array(fc.stringMatching(/^[ab/+~<> ]{0,8}$/)),
      places,
      (secret, between, at) => {
        const bytes = Buffer.from(secret)
        const spellings = [
          secret,
          bytes.toString('base64'),
          bytes.toString('base64url'),
          encodeURIComponent(secret),
          encodeURIComponent(secret).toLowerCase(),
        ]
        const text = between
          .map((each, index) => each + spellings[index % spellings.length])
          .join('')
        const whole = redacted(secret, [Buffer.from(text)])
        const parts = redacted(secret, cut(Buffer.from(text), at))
        t.deepEqual(parts, whole)
        for (const each of spellings) t.false(parts.text.includes(each.replace(/=+$/, '')), each)
        t.true(parts.count >= between.length - 1 || between.length === 0 || parts.count > 0)
      },
    ),
    { numRuns: 300 },
  )
})

for (const [name, secret, told, scheme] of [
  ['encodeURIComponent', "a!b/'c'", "a!b%2F'c'"],
  ['encodeURIComponent, lower case', "a!b/'c'", "a!b%2f'c'"],
  ['a form', 'a b+c/d~', 'a+b%2Bc%2Fd%7E', 'query:key'],
  ['JSON of PHP', 'a/b"c/d', String.raw`a\/b\"c\/d`],
  ['JSON of Go', 'a<b>&c', String.raw`a\u003cb\u003e\u0026c`],
  ['JSON of Python', 'schl\u00fcssel', String.raw`schl\u00fcssel`],
  ['JSON as it is', 'schl\u00fcssel', 'schl\u00fcssel'],
  ['Latin-1 written as UTF-8', 'schl\u00fcssel', 'schl\u00c3\u00bcssel'],
  ['a field value without the space around it', ' a-secret\t', 'a-secret'],
] as const) {
  test(`a secret is taken out as it is written by others: ${name}`, (t) => {
    const { text, count } = redacted(secret, [Buffer.from(`<${told}>`)], scheme)
    t.is(text, `<${REDACTED}>`)
    t.is(count, 1)
  })
}

test('what holds no secret passes byte for byte, whatever it is', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), places, (bytes, at) => {
      const secret = 'never-in-there-0123456789'
      const { text, count } = redacted(secret, cut(Buffer.from(bytes), at))
      t.true(Buffer.from(text, 'latin1').equals(Buffer.from(bytes)))
      t.is(count, 0)
    }),
  )
})

test('of a beginning that goes on otherwise nothing is lost', (t) => {
  const secret = 'abcabcabd'
  for (const text of ['abcabcabc', 'abcabcabcabd', 'abcabcababcabcabd', 'xabcabcab']) {
    const bytes = [...Buffer.from(text)].map((byte) => Buffer.of(byte))
    t.is(redacted(secret, bytes).text, text.replaceAll(secret, REDACTED))
  }
})

const count = fc.nat({ max: 1e9 })
const filler = fc.stringMatching(/^[a-z {}:",]{0,40}$/).filter((text) => !text.includes('usage'))

test('usage of OpenAI and Anthropic is read wherever the chunks end; the last one counts', (t) => {
  const objects = fc.oneof(
    fc.record({ prompt_tokens: count, completion_tokens: count }),
    fc.record({ input_tokens: count, output_tokens: count }),
    fc.record({
      prompt_tokens: count,
      prompt_tokens_details: fc.record({ cached_tokens: count }),
      completion_tokens: count,
    }),
  )
  fc.assert(
    fc.property(
      fc.array(objects, { minLength: 1, maxLength: 4 }),
      filler,
      places,
      (all, words, at) => {
        for (const space of [0, 2]) {
          const text = all
            .map((usage) => `data: ${JSON.stringify({ id: words, usage }, null, space)}\n\n`)
            .join('')
          const reader = createUsageReader('text/event-stream')!
          for (const chunk of cut(Buffer.from(text), at)) reader.push(chunk)
          const last = all.at(-1)! as Record<string, number>
          t.deepEqual(reader.counts, {
            input: last['prompt_tokens'] ?? last['input_tokens']!,
            output: last['completion_tokens'] ?? last['output_tokens']!,
          })
        }
      },
    ),
    { numRuns: 200 },
  )
})

test('whatever else an answer holds, reading its usage does not fail', (t) => {
  const noise = fc.oneof(
    fc.uint8Array(),
    fc.constantFrom('"usage"', '{', '}', ':', '9').map((text) => Buffer.from(text)),
  )
  fc.assert(
    fc.property(fc.array(noise), (chunks) => {
      const reader = createUsageReader('application/json')!
      for (const chunk of chunks) reader.push(chunk)
      const { input, output } = reader.counts
      t.true(input === null && output === null)
    }),
  )
})
