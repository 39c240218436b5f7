import test from 'ava'
import * as fc from 'fast-check'
import { recoveryCodeSha256 } from '../../../../actors/identity/sign-in/recovery-codes.js'
import {
  base32,
  otpauthUri,
  stepAt,
  totpCode,
  totpStepOf,
} from '../../../../actors/identity/sign-in/totp.js'

/** RFC 6238 appendix B, SHA-1; the last six of its eight digits. */
const SECRET = Buffer.from('12345678901234567890')
const VECTORS: readonly [secs: number, code: string][] = [
  [59, '287082'],
  [1111111109, '081804'],
  [1111111111, '050471'],
  [1234567890, '005924'],
  [2000000000, '279037'],
  [20000000000, '353130'],
]
for (const [secs, code] of VECTORS) {
  test(`RFC 6238: the code at ${secs} s is ${code}`, (t) => {
    t.is(totpCode(SECRET, stepAt(secs)), code)
    t.is(totpStepOf(SECRET, code, secs), stepAt(secs))
  })
}

test('a code is valid for its own step and one to either side', (t) => {
  const at = 1_234_567_890
  const code = totpCode(SECRET, stepAt(at))
  for (const [shift, holds] of [
    [-60, false],
    [-30, true],
    [0, true],
    [30, true],
    [60, false],
  ] as const) {
    t.is(totpStepOf(SECRET, code, at + shift) !== null, holds, `${shift} s`)
  }
})

test('anything but six digits is refused', (t) => {
  for (const typed of ['', '12345', '1234567', '12345a', ' 287082', '２８７０８２']) {
    t.is(totpStepOf(SECRET, typed, 59), null)
  }
})

test('RFC 4648: base32 without padding', (t) => {
  for (const [text, encoded] of [
    ['', ''],
    ['f', 'MY'],
    ['fo', 'MZXQ'],
    ['foo', 'MZXW6'],
    ['foob', 'MZXW6YQ'],
    ['fooba', 'MZXW6YTB'],
    ['foobar', 'MZXW6YTBOI'],
  ] as const) {
    t.is(base32(Buffer.from(text)), encoded)
  }
})

test('the otpauth URI encodes any names of tenant and user', (t) => {
  t.notThrows(() =>
    fc.assert(
      // A tenant always has a name.
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), fc.string(), (issuer, account) => {
        const uri = new URL(otpauthUri(issuer, account, SECRET))
        return (
          uri.protocol === 'otpauth:' &&
          uri.searchParams.get('issuer') === issuer &&
          uri.searchParams.get('secret') === base32(SECRET) &&
          uri.pathname.endsWith(`${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`)
        )
      }),
    ),
  )
})

test('a recovery code is accepted in any spelling, and belongs to one account', (t) => {
  const hash = recoveryCodeSha256('a', 'ABCD-EFGH-IJKL-MN23')
  t.deepEqual(recoveryCodeSha256('a', ' abcdefgh ijkl mn23 '), hash)
  t.notDeepEqual(recoveryCodeSha256('b', 'ABCD-EFGH-IJKL-MN23'), hash)
  for (const typed of ['', 'ABCD', 'ABCD-EFGH-IJKL-MN21', 'ABCD-EFGH-IJKL-MN23-X']) {
    t.is(recoveryCodeSha256('a', typed), null)
  }
})
