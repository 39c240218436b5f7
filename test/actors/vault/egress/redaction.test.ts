/** Redaction removes the secret and nothing else, for every split into chunks; so does reading usage. */
import test from 'ava'
import * as fc from 'fast-check'
import { MemoryShareExhausted } from '../../../../actors/vault/egress/redact/secret-automaton.js'
import {
  createRedactor,
  SecretEncodings,
  REDACTED,
} from '../../../../actors/vault/egress/redact/redaction.js'
import { AUTH_SCHEMES, readAuthScheme } from '../../../../actors/domain/vault/egress.js'
import { createUsageReader } from '../../../../actors/vault/egress/relay/usage.js'
import { IS_LONG } from '../../../support/runs.js'

const HEADER = readAuthScheme('header:x-k')!

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...at].map((from, index) => bytes.subarray(from, [...at, bytes.length][index]))
}

function redacted(secret: string, chunks: readonly Uint8Array[], scheme = 'bearer') {
  const redactor = createRedactor(new SecretEncodings(Buffer.from(secret), readAuthScheme(scheme)!))
  const parts = chunks.flatMap((chunk) => [...redactor.push(chunk)])
  const text = Buffer.concat([...parts, ...redactor.end()]).toString('latin1')
  return { text, count: redactor.count }
}

/** Runs of a property. The long form has `long` of them. */
const runs = (long: number) => (IS_LONG ? long : 25)

/** Few letters, so that a secret often overlaps itself and its surroundings. */
const letters = fc.stringMatching(/^[ab/+~]{6,12}$/)
const places = fc.array(fc.nat(), { maxLength: 40 })

test('a secret in any encoding is redacted for every split into chunks', (t) => {
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
    { numRuns: runs(300) },
  )
})

for (const [name, secret, encoded, scheme] of [
  ['encodeURIComponent', "a!b/'c'", "a!b%2F'c'"],
  ['encodeURIComponent, lower case', "a!b/'c'", "a!b%2f'c'"],
  ['a form', 'a b+c/d~', 'a+b%2Bc%2Fd%7E', 'query:key'],
  ['JSON of PHP', 'a/b"c/d', String.raw`a\/b\"c\/d`],
  ['JSON of Go', 'a<b>&c', String.raw`a\u003cb\u003e\u0026c`],
  ['JSON of Gson', "a<b>'c=", String.raw`a\u003cb\u003e\u0027c\u003d`],
  ['JSON of .NET', 'a+b/"\u00fc', String.raw`a\u002Bb/\u0022\u00FC`],
  ['HTML of .NET', 'a+b/"c', 'a&#x2B;b/&quot;c'],
  ['JSON of Python', 'schl\u00fcssel', String.raw`schl\u00fcssel`],
  ['JSON as it is', 'schl\u00fcssel', 'schl\u00fcssel'],
  ['HTML of Python', `a<b>&"'c`, 'a&lt;b&gt;&amp;&quot;&#x27;c'],
  ['HTML of Go', `a<b>&"'c`, 'a&lt;b&gt;&amp;&#34;&#39;c'],
  ['JSON with an escape for every character', 'a-j', String.raw`\u0061\u002d\u006a`],
  ['the same in upper case', 'a-j', String.raw`\u0061\u002D\u006A`],
  ['hex', 'a-secret', '612d736563726574'],
  ['hex, upper case', 'j-secret', '6A2D736563726574'],
  ['base64 with its padding', 'a-secret', 'YS1zZWNyZXQ='],
  ['base64url of the field value', 'a-secret', 'QmVhcmVyIGEtc2VjcmV0'],
  [
    'base64 of user and password in base64',
    'me:a-secret',
    'QmFzaWMgYldVNllTMXpaV055WlhRPQ==',
    'basic',
  ],
  ['percent-encoded base64 of user and password', 'me:a-secret', 'bWU6YS1zZWNyZXQ%3D', 'basic'],
  ['Latin-1 written as UTF-8', 'schl\u00fcssel', 'schl\u00c3\u00bcssel'],
  ['a field value without the space around it', ' a-secret\t', 'a-secret'],
] as const) {
  test(`a secret is redacted in the encoding of other programs: ${name}`, (t) => {
    const { text, count } = redacted(secret, [Buffer.from(`<${encoded}>`)], scheme)
    t.is(text, `<${REDACTED}>`)
    t.is(count, 1)
  })
}

test('a secret is redacted in UTF-16 of both byte orders', (t) => {
  for (const secret of ['a-secret', 'schl\u00fcssel', '\u{1f511}key']) {
    const little = Buffer.from(`<${secret}>`, 'utf16le')
    for (const sent of [little, Buffer.from(little).swap16()]) {
      const { text, count } = redacted(secret, [sent])
      t.is(count, 1, secret)
      t.true(text.includes(REDACTED))
      t.false(text.replaceAll('\0', '').includes('ecre'), text)
    }
  }
})

test('bytes without a secret are unchanged', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), places, (bytes, at) => {
      const secret = 'never-in-there-0123456789'
      const { text, count } = redacted(secret, cut(Buffer.from(bytes), at))
      t.true(Buffer.from(text, 'latin1').equals(Buffer.from(bytes)))
      t.is(count, 0)
    }),
  )
})

test('an incomplete occurrence is not lost', (t) => {
  const secret = 'abcabcabd'
  for (const text of ['abcabcabc', 'abcabcabcabd', 'abcabcababcabcabd', 'xabcabcab']) {
    const bytes = [...Buffer.from(text)].map((byte) => Buffer.of(byte))
    t.is(redacted(secret, bytes).text, text.replaceAll(secret, REDACTED))
  }
})

test('base64 is found at each alignment, except characters shared with neighbours', (t) => {
  const secret = 'a-secret-of-some-length'
  for (const before of ['', 'x', 'xy']) {
    for (const after of ['', 'z', 'zz']) {
      const encoded = Buffer.from(`{"key":"${before}${secret}${after}"}`).toString('base64')
      const { text, count } = redacted(secret, [Buffer.from(encoded)])
      t.is(count, 1)
      const left = Buffer.from(text.replace(REDACTED, ''), 'base64').toString('latin1')
      t.false(/secret|some|length/.test(left), left)
      t.true(
        text.length <= encoded.length - Math.floor((secret.length * 4) / 3) + REDACTED.length + 2,
      )
    }
  }
})

/** Reference implementation: every byte of every occurrence is removed; overlapping and adjacent ones are one. */
function naive(secret: string, text: Buffer, scheme: string): { text: string; count: number } {
  const covered = new Uint8Array(text.length)
  for (const { bytes, ends } of new SecretEncodings(Buffer.from(secret), readAuthScheme(scheme)!)
    .list) {
    for (const end of ends) {
      const encoding = bytes.subarray(0, end)
      for (let at = text.indexOf(encoding); at >= 0; at = text.indexOf(encoding, at + 1)) {
        covered.fill(1, at, at + end)
      }
    }
  }
  let out = ''
  let count = 0
  for (let at = 0; at < text.length; at += 1) {
    if (covered[at] === 0) out += String.fromCharCode(text[at]!)
    else if (at === 0 || covered[at - 1] === 0) {
      out += REDACTED
      count += 1
    }
  }
  return { text: out, count }
}

const SEED = 20_261_123

/** Repeated words, so that a secret overlaps itself and its prefixes. */
const periodic = fc
  .array(fc.tuple(fc.stringMatching(/^[ab"/<]{1,3}$/), fc.integer({ min: 1, max: 30 })), {
    minLength: 1,
    maxLength: 4,
  })
  .map((parts) => parts.map(([word, times]) => word.repeat(times)).join(''))

test('it removes the same bytes as the reference, for every split into chunks', (t) => {
  fc.assert(
    fc.property(
      periodic,
      fc.constantFrom(...AUTH_SCHEMES.map((shown) => shown.replace(/<.*>/, 'x-k'))),
      fc.array(
        fc.tuple(fc.nat({ max: 40 }), fc.nat({ max: 400 }), fc.stringMatching(/^[ab"/<]{0,9}$/)),
      ),
      places,
      (secret, scheme, pieces, at) => {
        const { list } = new SecretEncodings(Buffer.from(secret), readAuthScheme(scheme)!)
        // Whole encodings, prefixes of them, and similar bytes.
        const text = Buffer.concat(
          pieces.flatMap(([index, length, between]) => [
            list[index % list.length]!.bytes.subarray(0, length),
            Buffer.from(between),
          ]),
        )
        const wanted = naive(secret, text, scheme)
        t.deepEqual(redacted(secret, [text], scheme), wanted)
        t.deepEqual(redacted(secret, cut(text, at), scheme), wanted)
        t.deepEqual(
          redacted(
            secret,
            [...text].map((byte) => Buffer.of(byte)),
            scheme,
          ),
          wanted,
        )
      },
    ),
    { numRuns: runs(400), seed: SEED },
  )
})

test('only a possible prefix is held back, at most as long as the longest encoding', (t) => {
  fc.assert(
    fc.property(periodic, fc.array(periodic, { minLength: 1, maxLength: 20 }), (secret, chunks) => {
      const encodings = new SecretEncodings(Buffer.from(secret), HEADER)
      const redactor = createRedactor(encodings)
      let text = Buffer.alloc(0)
      let passed = 0
      for (const chunk of chunks) {
        text = Buffer.concat([text, Buffer.from(chunk)])
        for (const part of redactor.push(Buffer.from(chunk))) passed += part.length
        if (redactor.count > 0) return
        let open = 0
        for (const { bytes } of encodings.list) {
          for (let length = Math.min(bytes.length, text.length); length > open; length -= 1) {
            if (text.subarray(text.length - length).equals(bytes.subarray(0, length))) open = length
          }
        }
        t.is(text.length - passed, open)
      }
    }),
    { numRuns: runs(300), seed: SEED },
  )
})

const CHUNK_BYTES = 64 * 1024
const fibonacci = (length: number) => {
  let [one, two] = ['a', 'ab']
  while (two.length < length) [one, two] = [two, two + one]
  return two.slice(0, length)
}

for (const [name, secret, body] of [
  ['a long secret of one letter but one', `${'a'.repeat(32_000)}b${'a'.repeat(28_000)}`, 'a'],
  ['a long secret of one letter', 'a'.repeat(60_000), 'a'],
  ['a secret of one letter', 'a'.repeat(1_000), 'a'],
  ['a short secret of one letter', 'aaaaaaaaaaaa', 'a'],
  ['two letters', 'ab', 'ab'],
  ['a beginning that never goes on', `${'a'.repeat(31)}b`, `${'a'.repeat(31)}c`],
  ['base64 of one letter', `${'a'.repeat(32_000)}b${'a'.repeat(28_000)}`, 'YWFh'],
  ['Fibonacci words', `${fibonacci(30_000)}c${fibonacci(29_000)}`, fibonacci(50_000)],
  ['runs of many lengths', `${'a'.repeat(50_000)}b`, `${'a'.repeat(900)}b${'a'.repeat(77)}b`],
  ['all escapes', '"<&/'.repeat(15_000), '&quot;&lt;&amp;/'],
] as const) {
  test(`the work is linear for any secret and body: ${name}`, (t) => {
    const encodings = new SecretEncodings(Buffer.from(secret), HEADER)
    const redactor = createRedactor(encodings)
    const body64 = Buffer.from(body.repeat(Math.ceil((4 * CHUNK_BYTES) / body.length)))
    const round = () => {
      for (let at = 0; at < body64.length; at += CHUNK_BYTES) {
        redactor.push(body64.subarray(at, at + CHUNK_BYTES))
      }
    }
    round()
    const nodes = encodings.list.reduce((sum, { bytes }) => sum + bytes.length, 0)
    t.true(redactor.steps <= 3 * body64.length + 6 * nodes, 'with what is built once')
    const built = redactor.steps
    for (let times = 0; times < 4; times += 1) round()
    t.true(redactor.steps - built <= 4 * 3 * body64.length, String(redactor.steps - built))
  })
}

test('a field value is redacted like a body with the same bytes', (t) => {
  const byte = fc.nat({ max: 255 }).map((code) => String.fromCharCode(code))
  const around = fc.array(fc.oneof(byte, letters), { maxLength: 20 })
  fc.assert(
    fc.property(letters, around, around, fc.boolean(), (secret, before, after, isPresent) => {
      const value = [...before, isPresent ? secret : '', ...after].join('')
      const redactor = createRedactor(
        new SecretEncodings(Buffer.from(secret), readAuthScheme('bearer')!),
      )
      const text = redactor.text(value)
      const body = redacted(secret, [Buffer.from(value, 'latin1')])
      t.deepEqual({ text, count: redactor.count }, body)
      if (isPresent) t.true(redactor.count > 0)
    }),
    { numRuns: runs(1000) },
  )
})

test('headers are searched in linear work too', (t) => {
  const redactor = createRedactor(
    new SecretEncodings(Buffer.from(`${'a'.repeat(32_000)}b${'a'.repeat(28_000)}`), HEADER),
  )
  const value = 'a'.repeat(60_000)
  t.is(redactor.text(value), value)
  const built = redactor.steps
  t.is(redactor.text(value), value)
  t.true(redactor.steps - built <= 3 * value.length)
})

test('memory for a long secret is reserved once, when its prefix occurs, and is bounded', (t) => {
  const reserved: number[] = []
  const secret = '"<&/'.repeat(16 * 1024)
  const encodings = new SecretEncodings(Buffer.from(secret), HEADER, (bytes) => {
    reserved.push(bytes)
    return reserved.length < 2
  })
  const redactor = createRedactor(encodings)
  redactor.push(Buffer.from('something else altogether'.repeat(100)))
  t.deepEqual(reserved, [])
  redactor.push(Buffer.from(secret))
  redactor.push(Buffer.from(secret))
  t.is(reserved.length, 1)
  t.true(reserved[0]! <= 16 * 1024 * 1024)
  const none = createRedactor(new SecretEncodings(Buffer.from(secret), HEADER, () => false))
  t.throws(() => none.push(Buffer.from(secret)), { instanceOf: MemoryShareExhausted })
})

const count = fc.nat({ max: 1e9 })
const filler = fc.stringMatching(/^[a-z {}:",]{0,40}$/).filter((text) => !text.includes('usage'))

test('usage of OpenAI and Anthropic is read for every split into chunks; the last one counts', (t) => {
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
    { numRuns: runs(200) },
  )
})

test('reading usage never fails, for any response', (t) => {
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
