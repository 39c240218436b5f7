/** The vectors of draft-ietf-oauth-status-list, read back by @sd-jwt/jwt-status-list. */
import { inflateSync } from 'node:zlib'
import { StatusList } from '@sd-jwt/jwt-status-list'
import test from 'ava'
import {
  encodeList,
  listClaims,
  packStatuses,
} from '../../../actors/oauth/status-lists/list-token.js'

const entries = (statuses: readonly number[]) =>
  statuses.map((status, idx) => [idx, status] as const)
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const inflated = (lst: string) => hex(inflateSync(Buffer.from(lst, 'base64url')))

test('one bit: 16 entries are the bytes b9a3', (t) => {
  const statuses = [1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 1]
  const bytes = packStatuses(16, 1, entries(statuses))
  t.is(hex(bytes), 'b9a3')
  t.is(inflated(encodeList(bytes)), inflated('eNrbuRgAAhcBXQ'))
  const read = StatusList.decompressStatusList(encodeList(bytes), 1)
  t.deepEqual(
    statuses.map((_, idx) => read.getStatus(idx)),
    statuses,
  )
})

test('two bits: 12 entries are the bytes c944f9', (t) => {
  const statuses = [1, 2, 0, 3, 0, 1, 0, 1, 1, 2, 3, 3]
  const bytes = packStatuses(12, 2, entries(statuses))
  t.is(hex(bytes), 'c944f9')
  t.is(inflated(encodeList(bytes)), inflated('eNo76fITAAPfAgc'))
  const read = StatusList.decompressStatusList(encodeList(bytes), 2)
  t.deepEqual(
    statuses.map((_, idx) => read.getStatus(idx)),
    statuses,
  )
})

test('a list of 2^20 entries shows exactly the invalid ones', (t) => {
  const invalid = [
    0, 1993, 25_460, 159_495, 495_669, 554_353, 645_645, 723_232, 854_545, 934_534, 1_000_345,
  ]
  const claims = listClaims({
    uri: 'https://id.example/status-lists/1',
    issuer: 'https://id.example',
    purpose: 'access_token',
    size: 2 ** 20,
    invalid,
    aggregationUri: 'https://id.example/status-lists',
    nowSecs: 1_000,
  })
  t.like(claims, {
    iss: 'https://id.example',
    sub: 'https://id.example/status-lists/1',
    iat: 1_000,
    exp: 1_120,
    ttl: 60,
  })
  const { bits, lst } = claims['status_list'] as { bits: 1; lst: string }
  const bytes = inflateSync(Buffer.from(lst, 'base64url'))
  t.is(bytes.length, 2 ** 17)
  t.is(
    bytes.reduce((sum, byte) => sum + byte.toString(2).replaceAll('0', '').length, 0),
    invalid.length,
  )
  const read = StatusList.decompressStatusList(lst, bits)
  for (const idx of invalid) t.is(read.getStatus(idx), 1, String(idx))
  for (const idx of [1, 1992, 1994, 2 ** 20 - 1]) t.is(read.getStatus(idx), 0, String(idx))
})

test('entries out of range are refused', (t) => {
  for (const [idx, status] of [
    [-1, 1],
    [8, 1],
    [0, 2],
    [0, -1],
  ] as const)
    t.throws(() => packStatuses(8, 1, [[idx, status]]), { instanceOf: RangeError })
})
