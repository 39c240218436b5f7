import test from 'ava'
import * as fc from 'fast-check'
import {
  requestedScopes,
  grantableScopes,
  isSteppedUp,
  judgePoll,
  visibleTo,
} from '../../../../actors/agents/delegation/rules.js'
import type { Principal } from '../../../../actors/domain/principal.js'
import { HUMAN_SCOPES, SCOPES } from '../../../../actors/domain/scopes.js'

const at = (second: number) => new Date(Date.UTC(2030, 0, 1, 0, 0, second))
const pending = {
  status: 'pending',
  expiresAt: at(900),
  tooFast: false,
  interval: 5,
  revoked: false,
} as const

for (const [title, row, tag] of [
  ['a pending request is pending', {}, 'pending'],
  ['a fast poll of it gets slow_down', { tooFast: true }, 'slow_down'],
  ['an approved one is redeemed', { status: 'approved' }, 'approved'],
  ['an approved one, however fast', { status: 'approved', tooFast: true }, 'approved'],
  ['a denied one stays denied', { status: 'denied' }, 'denied'],
  ['a denied one stays denied after its expiry', { status: 'denied', expiresAt: at(1) }, 'denied'],
  ['a redeemed one is invalid', { status: 'consumed' }, 'invalid'],
  ['a redeemed one is invalid even if revoked', { status: 'consumed', revoked: true }, 'invalid'],
  ['an expired pending one', { expiresAt: at(10) }, 'expired'],
  ['an expired approved one', { status: 'approved', expiresAt: at(10) }, 'expired'],
  ['a revoked approval', { status: 'approved', revoked: true }, 'denied'],
] as const) {
  test(title, (t) => t.is(judgePoll({ ...pending, ...row }, at(10)).tag, tag))
}

const scopes = fc.uniqueArray(fc.constantFrom(...SCOPES))
const roles = fc.constantFrom('member', 'admin', 'owner' as const)

test('the grantable scopes are the requested ones that the person holds, each once', (t) => {
  const found = fc.check(
    fc.property(scopes, roles, (asked, role) => {
      const read = requestedScopes([...asked, ...asked].join(' '), SCOPES)
      if ('refused' in read) return asked.length === 0
      const granted = grantableScopes(read.scopes, { role, confined: false, organizationId: null })
      const held: readonly string[] = HUMAN_SCOPES[role]
      return (
        new Set(granted).size === granted.length &&
        granted.every((scope) => held.includes(scope) && (asked as string[]).includes(scope)) &&
        asked.every((scope) => !held.includes(scope) || granted.includes(scope))
      )
    }),
  )
  t.false(found.failed, JSON.stringify(found.counterexample))
})

test('unknown scopes are reported', (t) => {
  t.deepEqual(requestedScopes('openid fly  swim', SCOPES), { refused: ['fly', 'swim'] })
  t.deepEqual(requestedScopes('  ', SCOPES), { refused: [] })
})

test('scopes of operators are refused to an agent without them', (t) => {
  for (const scope of ['signing_keys:manage', 'deployment:manage', 'metrics:read']) {
    t.deepEqual(requestedScopes(`openid ${scope}`, ['openid']), { refused: [scope] })
    t.deepEqual(requestedScopes(scope, [scope]), { scopes: [scope] })
  }
})

test('ssh is short for vault:sign, which every person holds', (t) => {
  t.deepEqual(requestedScopes('ssh vault:sign openid', []), { scopes: ['openid', 'vault:sign'] })
  for (const role of ['member', 'admin', 'owner'] as const) {
    t.deepEqual(grantableScopes(['vault:sign'], { role, confined: false, organizationId: null }), [
      'vault:sign',
    ])
  }
})

const principal: Principal = {
  subject: 'ada',
  subjectType: 'human',
  tenantId: 'tenant',
  organizationId: null,
  clientId: 'application',
  scopes: [],
  audience: [],
  actors: [],
  delegationId: null,
  sessionId: null,
  acr: 'aal2',
  authTimeSecs: 1000,
  jkt: null,
  tokenId: 'token',
  expiresAtSecs: 2000,
}
const manages = ['delegations:manage']
const agent = { subject: 'helper', subjectType: 'agent' } as const
const acting = { actors: [{ sub: 'helper', subjectType: 'agent' }] } as const

for (const [title, who, role, seen] of [
  ['a person sees their own', {}, 'member', { agentId: null, subject: 'ada' }],
  ['a member who manages, too', { scopes: manages }, 'member', { agentId: null, subject: 'ada' }],
  ['an admin without the scope, too', {}, 'admin', { agentId: null, subject: 'ada' }],
  ['an admin who manages sees all', { scopes: manages }, 'admin', { agentId: null, subject: null }],
  ['an agent sees its own', agent, null, { agentId: 'helper', subject: null }],
  [
    'one that manages sees all',
    { ...agent, scopes: manages },
    null,
    { agentId: null, subject: null },
  ],
  [
    'who acts for a person sees what it was lent',
    acting,
    'owner',
    { agentId: 'helper', subject: 'ada' },
  ],
  [
    'with the scope what they lent',
    { ...acting, scopes: manages },
    'owner',
    { agentId: null, subject: 'ada' },
  ],
  ['an application sees nothing', { subjectType: 'service' }, null, null],
] as const) {
  test(title, (t) => t.deepEqual(visibleTo({ ...principal, ...who }, role), seen))
}

for (const [acr, needed, authTimeSecs, now, is] of [
  ['aal2', 2, 1000, 1300, true],
  ['aal3', 2, 1000, 1300, true],
  ['aal3', 3, 1000, 1300, true],
  ['aal2', 3, 1000, 1300, false],
  ['aal3', 3, 1000, 1301, false],
  ['aal2', 2, 1000, 1301, false],
  ['aal1', 2, 1000, 1000, false],
  [null, 2, 1000, 1000, false],
  ['aal9', 2, 1000, 1000, false],
  ['aal2', 2, null, 1000, false],
] as const) {
  test(`${acr} of ${authTimeSecs} is ${is ? '' : 'not '}enough for aal${needed} at ${now}`, (t) => {
    t.is(isSteppedUp({ ...principal, acr, authTimeSecs }, needed, now, 300), is)
  })
}
