import { createHash } from 'node:crypto'
import { Worker } from 'node:worker_threads'
import test from 'ava'
import * as fc from 'fast-check'
import { judgeWork, leadingZeroBits } from '../../../../actors/agents/proof-of-work/work.js'
import { Search } from '../../../../runtime/clients/client/search.js'
import { solve, solveWith, type StartThread } from '../../../../runtime/clients/client/solver.js'
import { contract } from '../../../vectors/contract.js'
import { IS_LONG } from '../../../support/runs.js'

const { challenge_token: challengeToken, smallest } = contract.work

for (const threads of [1, 3]) {
  for (const { difficulty_bits: difficultyBits, nonce } of smallest) {
    test(`with ${threads} threads the smallest nonce of ${difficultyBits} bits is found`, async (t) => {
      t.is(await solve({ challengeToken, difficultyBits, threads }), nonce)
    })
  }
}

test('the inner loop agrees with node:crypto for every length of token and nonce', (t) => {
  const token = fc.string({ unit: 'grapheme', maxLength: 150 })
  const start = fc.oneof(fc.nat(2000), fc.integer({ min: 0, max: 2 ** 52 }))
  fc.assert(
    fc.property(token, start, (challengeToken, from) => {
      const expected = firstByHashing(challengeToken, 4, from, 40)
      t.is(new Search(challengeToken, 4).first(from, 40), expected)
    }),
    { numRuns: IS_LONG ? 300 : 25 },
  )
})

test('tokens at the edges of a block, and counts over a power of ten, are searched rightly', (t) => {
  for (let length = 30; length <= 130; length++) {
    const token = 'x'.repeat(length)
    for (const from of [5, 95, 9_990, 99_999_990]) {
      t.is(new Search(token, 3).first(from, 30), firstByHashing(token, 3, from, 30))
    }
  }
})

const dying: StartThread = () => new Worker('process.exit(1)', { eval: true })
const throwing: StartThread = () => new Worker('throw new Error("no")', { eval: true })
for (const [title, start] of [
  ['cannot be had', () => null],
  ['exit immediately', dying],
  ['fail immediately', throwing],
] as const) {
  test(`when threads ${title}, the search continues alone`, async (t) => {
    const options = { challengeToken, difficultyBits: 16, threads: 2 }
    t.is(await solveWith(start, options), '13370')
  })
}

test('a range without a hit returns -1', (t) => {
  t.is(new Search(challengeToken, 32).first(0, 1000), -1)
  t.is(new Search(challengeToken, 8).first(0, 269), -1)
  t.is(new Search(challengeToken, 8).first(0, 270), 269)
})

test('the service accepts an answer of the solver', async (t) => {
  const token = createHash('sha256').update('a fresh token').digest('base64url')
  const nonce = await solve({ challengeToken: token, difficultyBits: 14 })
  t.is(judgeWork(token, nonce, 14), 'valid')
})

for (const threads of [1, 2]) {
  test(`an aborted search on ${threads} threads ends with the reason`, async (t) => {
    const controller = new AbortController()
    const reason = new Error('enough')
    const endless = solve({
      challengeToken,
      difficultyBits: 32,
      threads,
      signal: controller.signal,
      onProgress: () => controller.abort(reason),
    })
    t.is(await t.throwsAsync(endless), reason)
  })

  test(`a search on ${threads} threads that was aborted before does not start`, async (t) => {
    const signal = AbortSignal.abort(new Error('before'))
    const options = { challengeToken, difficultyBits: 32, threads, signal }
    await t.throwsAsync(solve(options), { message: 'before' })
  })

  test(`an impossible difficulty is refused on ${threads} threads`, async (t) => {
    const options = { challengeToken, difficultyBits: 33, threads }
    await t.throwsAsync(solve(options), { instanceOf: RangeError })
  })
}

for (const threads of [1, 2]) {
  test(`a failing progress callback on ${threads} threads fails the search`, async (t) => {
    const onProgress = () => {
      throw new Error('mine')
    }
    const options = { challengeToken, difficultyBits: 32, threads, onProgress }
    await t.throwsAsync(solve(options), { message: 'mine' })
  })
}

test('progress only grows and ends past the answer', async (t) => {
  const seen: number[] = []
  const onProgress = (tried: number) => seen.push(tried)
  await solve({ challengeToken, difficultyBits: 20, threads: 2, onProgress })
  t.deepEqual(
    seen,
    [...seen].sort((a, b) => a - b),
  )
  t.true(seen.at(-1)! > 2_017_588)
})

function firstByHashing(token: string, bits: number, from: number, count: number): number {
  for (let nonce = from; nonce < from + count; nonce++) {
    const digest = createHash('sha256').update(`${token}:${nonce}`).digest()
    if (leadingZeroBits(digest) >= bits) return nonce
  }
  return -1
}
