import { randomBytes } from 'node:crypto'
import test from 'ava'
import * as fc from 'fast-check'
import {
  newUserCode,
  readUserCode,
  showUserCode,
  USER_CODE_ALPHABET,
} from '../../../actors/domain/user-code.js'

const codes = fc
  .array(fc.constantFrom(...USER_CODE_ALPHABET), { minLength: 8, maxLength: 8 })
  .map((letters) => letters.join(''))

test('a new code is eight letters of the alphabet', (t) => {
  for (let i = 0; i < 1000; i++) t.regex(newUserCode(randomBytes), /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/)
})

test('bytes that would favour some letters are drawn again', (t) => {
  const draws = [new Uint8Array(16).fill(255), Uint8Array.from({ length: 16 }, (_, i) => 239 - i)]
  t.is(
    newUserCode(() => draws.shift()!),
    'ZXWVTSRQ',
  )
})

test('every letter is as likely as the others', (t) => {
  const counts = new Map<string, number>()
  for (let i = 0; i < 5000; i++) {
    for (const letter of newUserCode(randomBytes)) {
      counts.set(letter, (counts.get(letter) ?? 0) + 1)
    }
  }
  t.is(counts.size, 20)
  // 40,000 letters, 2,000 of each expected; 7 standard deviations are 308.
  for (const count of counts.values()) t.true(Math.abs(count - 2000) < 310)
})

test('a code as shown, in any case and spacing, is the code', (t) => {
  const spacing = fc.constantFrom('', ' ', '-', '  ', '\u2011', '\t', '\u00a0', ' - ')
  const read = fc.check(
    fc.property(codes, fc.array(spacing, { minLength: 9, maxLength: 9 }), (code, gaps) => {
      const typed = gaps.map((gap, at) => gap + (code[at] ?? '')).join('')
      return (
        readUserCode(typed.toLowerCase()) === code &&
        readUserCode(showUserCode(code)) === code &&
        readUserCode(typed) === code
      )
    }),
  )
  t.false(read.failed, JSON.stringify(read.counterexample))
})

for (const typed of [
  '',
  'BCDFGHJ',
  'BCDFGHJKL',
  'BCDFGHJA',
  'BCDFGHJ0',
  'BCDF_GHJK',
  'ВCDFGHJK',
  'BCDFGHJK\0',
  `BCDFGHJK${' '.repeat(64)}`,
]) {
  test(`${JSON.stringify(typed.slice(0, 20))} is no code`, (t) => t.is(readUserCode(typed), null))
}

test('nothing that is read is anything but a code', (t) => {
  const read = fc.check(
    fc.property(fc.string({ unit: 'binary' }), (typed) => {
      const code = readUserCode(typed)
      return code === null || /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/.test(code)
    }),
  )
  t.false(read.failed, JSON.stringify(read.counterexample))
})
