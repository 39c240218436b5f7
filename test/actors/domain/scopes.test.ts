import test from 'ava'
import * as fc from 'fast-check'
import {
  agentScopes,
  CONTROL_PLANE_OWNER_SCOPES,
  HUMAN_SCOPES,
  narrowScopes,
  parseScope,
  REGISTERED_AGENT_SCOPES,
  SCOPES,
  TENANT_SCOPES,
  WORKSPACE_APPLICATION_SCOPES,
} from '../../../actors/domain/scopes.js'

const granted = [...REGISTERED_AGENT_SCOPES]

for (const [title, standing, scopes] of [
  [
    'an owner holds the operator scopes in the control plane',
    { controlPlane: true, role: 'owner', granted },
    'org:read org:create org:manage tenant:manage',
  ],
  [
    'an owner holds every tenant scope in the tenants of the organization',
    { controlPlane: false, role: 'owner', granted },
    TENANT_SCOPES.join(' '),
  ],
  [
    'an agent of no organization holds what is stored with it',
    { controlPlane: false, role: null, granted },
    'openid vault:list vault:read',
  ],
  [
    'a member holds what is stored with it',
    { controlPlane: false, role: 'member', granted: ['vault:read', 'users:read'] },
    'users:read vault:read',
  ],
  [
    'a stored scope that the catalogue does not know is worth nothing',
    { controlPlane: true, role: null, granted: ['everything'] },
    '',
  ],
] as const) {
  test(title, (t) => t.is(agentScopes(standing).join(' '), scopes))
}

test('an omitted or empty scope is everything allowed', (t) => {
  t.deepEqual(narrowScopes(null, REGISTERED_AGENT_SCOPES), REGISTERED_AGENT_SCOPES)
  t.deepEqual(narrowScopes([], REGISTERED_AGENT_SCOPES), REGISTERED_AGENT_SCOPES)
})

test('a subset of what is allowed is given, in catalogue order', (t) => {
  t.deepEqual(narrowScopes(['vault:read', 'openid'], REGISTERED_AGENT_SCOPES), [
    'openid',
    'vault:read',
  ])
})

test('one scope outside of what is allowed refuses the whole request', (t) => {
  t.is(narrowScopes(['openid', 'users:manage'], REGISTERED_AGENT_SCOPES), undefined)
  t.is(narrowScopes(['org:create'], TENANT_SCOPES), undefined)
})

test('whatever is asked for, nothing beyond what is allowed is given', (t) => {
  const some = fc.subarray([...SCOPES, 'unknown'])
  t.notThrows(() =>
    fc.assert(
      fc.property(some, fc.subarray([...SCOPES]), (asked, allowed) => {
        const given = narrowScopes(asked, allowed)
        return given === undefined
          ? asked.some((scope) => !(allowed as string[]).includes(scope))
          : given.every((scope) => allowed.includes(scope))
      }),
    ),
  )
})

test('a scope parameter is split at spaces, each scope counted once', (t) => {
  t.deepEqual(parseScope('  openid vault:read  openid '), ['openid', 'vault:read'])
  t.deepEqual(parseScope(''), [])
})

test('each role holds what the one below it holds', (t) => {
  for (const scope of HUMAN_SCOPES.member) t.true(HUMAN_SCOPES.admin.includes(scope))
  for (const scope of HUMAN_SCOPES.admin) t.true(HUMAN_SCOPES.owner.includes(scope))
})

test('the catalogue names each scope once, and every list draws from it', (t) => {
  t.is(new Set(SCOPES).size, SCOPES.length)
  for (const list of [CONTROL_PLANE_OWNER_SCOPES, WORKSPACE_APPLICATION_SCOPES]) {
    for (const scope of list) t.true(SCOPES.includes(scope))
  }
  const outside = WORKSPACE_APPLICATION_SCOPES.filter(
    (scope) => !(TENANT_SCOPES as readonly string[]).includes(scope),
  )
  t.deepEqual(outside, [])
})
