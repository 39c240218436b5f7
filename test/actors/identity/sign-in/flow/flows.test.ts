import { highestRole } from '../../../../../actors/domain/scopes.js'
import { parseEmail } from '../../../../../actors/domain/email.js'
import test from 'ava'
import * as fc from 'fast-check'
import {
  isOwnPath,
  nextStep,
  type Step,
  type StoredDemand,
  storedDemand,
} from '../../../../../actors/identity/sign-in/flow/flows.js'
import type { AssuranceLevel } from '../../../../../actors/domain/assurance.js'
import type { BrowserSessionRow } from '../../../../../storage/identity/browser-sessions.js'

const at = (secs: number) => new Date(Date.UTC(2030, 0, 1) + secs * 1000)
const NOW = at(1_000)

const session: BrowserSessionRow = {
  id: 's1',
  tenantId: 't1',
  organizationId: null,
  accountId: 'a1',
  tenantUserId: 'u1',
  sub: 'sub1',
  email: parseEmail('a@b.test')!,
  emailVerified: true,
  displayName: '',
  roles: [],
  level: 1,
  pending: false,
  confined: false,
  amr: ['pwd'],
  authTime: at(900),
  passwordAt: at(900),
  createdAt: at(900),
  lastSeenAt: at(900),
  idleSecs: 3_600,
  expiresAt: at(90_000),
}
const reason = { tag: 'account' }
const demand: StoredDemand = { tenantId: 't1', level: 1, maxAgeSecs: null, since: null, sub: null }

type Case = [
  title: string,
  demand: Partial<StoredDemand> & { readonly reason?: { readonly tag: string } },
  session: Partial<BrowserSessionRow> | null,
  reach: AssuranceLevel,
  step: Step,
]
const cases: Case[] = [
  ['no session', {}, null, 1, 'login'],
  ['a session', {}, {}, 1, 'done'],
  ['a session of another tenant', { tenantId: 't2' }, {}, 1, 'login'],
  ['a session of another user than required', { sub: 'sub2' }, {}, 1, 'login'],
  ['a pending second factor', {}, { pending: true }, 2, 'mfa'],
  ['a pending second factor at another tenant', { tenantId: 't2' }, { pending: true }, 2, 'login'],
  ['level 2 required, with a factor', { level: 2 }, {}, 2, 'mfa'],
  ['level 2 required, without a factor, right after the password', { level: 2 }, {}, 1, 'enroll'],
  [
    'level 2 required, without a factor, hours later',
    { level: 2 },
    { passwordAt: at(600) },
    1,
    'login',
  ],
  [
    'enrolment required, signed in by a tenant’s provider',
    { level: 2 },
    { confined: true },
    1,
    'login',
  ],
  [
    'level 2 required, with a factor, signed in by a tenant’s provider',
    { level: 2 },
    { confined: true },
    2,
    'mfa',
  ],
  ['signed in by a tenant’s provider', {}, { confined: true }, 1, 'done'],
  [
    'a sensitive change, signed in by a tenant’s provider',
    { reason: { tag: 'sensitive' } },
    { confined: true, level: 3 },
    3,
    'login',
  ],
  ['a sensitive change', { reason: { tag: 'sensitive' } }, {}, 1, 'done'],
  ['level 2 reached', { level: 2 }, { level: 2 }, 2, 'done'],
  ['level 3 required, with a passkey that reaches it', { level: 3 }, { level: 2 }, 3, 'mfa'],
  ['level 3 required, with factors that reach 2', { level: 3 }, { level: 2 }, 2, 'enroll'],
  ['level 3 required, before the strongest factor is used', { level: 3 }, {}, 2, 'mfa'],
  ['level 3 reached', { level: 3 }, { level: 3 }, 3, 'done'],
  ['level 2 required, level 3 reached', { level: 2 }, { level: 3 }, 3, 'done'],
  ['the authentication is young enough', { maxAgeSecs: 100 }, {}, 1, 'done'],
  ['the authentication is a second too old', { maxAgeSecs: 99 }, {}, 1, 'login'],
  ['an old authentication of level 2', { level: 2, maxAgeSecs: 99 }, { level: 2 }, 2, 'login'],
  ['the sign-in was before the request', { since: at(901) }, {}, 1, 'login'],
  ['the sign-in was made for the request', { since: at(900) }, {}, 1, 'done'],
]
for (const [title, wanted, change, reach, step] of cases) {
  test(`next page with ${title}: ${step}`, (t) => {
    const row = change === null ? undefined : { ...session, ...change }
    t.is(nextStep({ ...demand, reason, ...wanted }, row, reach, NOW), step)
  })
}

test('max_age=0 is met by a sign-in made for the request, however long it takes', (t) => {
  const order = { tenantId: 't1', demand: { level: 1, maxAgeSecs: 0, asOf: at(890) } } as const
  const stored = storedDemand(order)
  t.deepEqual(stored, { ...demand, since: at(890) })
  t.is(nextStep({ ...stored, reason }, { ...session, authTime: at(889) }, 1, NOW), 'login')
  t.is(nextStep({ ...stored, reason }, session, 1, NOW), 'done')
})

test('only same-origin paths are return paths', (t) => {
  for (const path of ['/', '/auth/account', '/oauth/authorize/resume/x?a=b%2F&c=//d', '/a//b']) {
    t.true(isOwnPath(path), path)
  }
  for (const path of [
    '',
    'auth/account',
    '//evil.example',
    '/\\evil.example',
    '\\/evil.example',
    'https://evil.example',
    '/ok\\..\\evil',
    '/\t/evil.example',
    '/\n//evil.example',
    ' //evil.example',
    'javascript:alert(1)',
    `/${'a'.repeat(2_048)}`,
    '/ä',
  ]) {
    t.false(isOwnPath(path), JSON.stringify(path))
  }
})

test('no accepted return path leads to another host', (t) => {
  const nasty = fc.stringMatching(/^[/\\a.:@?#\t\n %]{0,12}$/)
  t.notThrows(() =>
    fc.assert(
      fc.property(fc.oneof(nasty, fc.webPath(), fc.string()), (path) => {
        if (!isOwnPath(path)) return true
        return new URL(path, 'https://auth.example').origin === 'https://auth.example'
      }),
      { numRuns: 2_000 },
    ),
  )
})

test('the highest role counts, and without a role it is member', (t) => {
  t.is(highestRole([]), 'member')
  t.is(highestRole(['auditor']), 'member')
  t.is(highestRole(['member', 'admin']), 'admin')
  t.is(highestRole(['admin', 'owner']), 'owner')
})
