import test from 'ava'
import {
  chooseLogin,
  judgeChallenge,
  mayLogIn,
  refusal,
  secondsTooEarly,
} from '../../../../actors/agents/agents/rules.js'
import type { Tenant } from '../../../../actors/domain/tenants/tenancy.js'
import type { LoginCandidate, OpenChallenge } from '../../../../storage/agents/agent-challenges.js'

const tenant: Tenant = {
  id: 'sandbox',
  organizationId: 'organization',
  name: 'Acme sandbox',
  slug: 'acme-sandbox',
  environment: 'sandbox',
  status: 'active',
  controlPlane: false,
  admitAgents: true,
  directAgentRegistration: false,
  credentialIssuerEnabled: false,
}
const controlPlane: Tenant = { ...tenant, id: 'control', controlPlane: true, organizationId: null }

for (const [title, change, way, detail] of [
  ['a tenant that admits agents takes them by proof of work', {}, 'proof_of_work', undefined],
  ['a tenant that does not, does not', { admitAgents: false }, 'proof_of_work', /does not admit/],
  ['a suspended tenant admits no agent', { status: 'suspended' }, 'proof_of_work', /suspended/],
  ['direct registration is closed unless opened', {}, 'direct', /direct/],
  [
    'direct registration, where it is opened, does not need admit_agents',
    { directAgentRegistration: true, admitAgents: false },
    'direct',
    undefined,
  ],
] as const) {
  test(title, (t) => {
    const refused = refusal({ ...tenant, ...change }, way)
    if (detail === undefined) t.is(refused, undefined)
    else t.regex(refused?.detail ?? '', detail)
  })
}

const issued = {
  kind: 'agent',
  status: 'issued',
  challengeToken: 'token',
  outlived: false,
} as const

for (const [title, row, sent, tag] of [
  ['an issued challenge is open', issued, {}, 'open'],
  ['an unknown challenge is unknown', undefined, {}, 'unknown_challenge'],
  [
    'a challenge of the other route is refused',
    { ...issued, kind: 'workspace' },
    {},
    'challenge_mismatch',
  ],
  ['another challenge_token is refused', issued, { challengeToken: 'x' }, 'challenge_mismatch'],
  ['the issued challenge_token may be sent along', issued, { challengeToken: 'token' }, 'open'],
  ['an outlived challenge has expired', { ...issued, outlived: true }, {}, 'challenge_expired'],
  [
    'too many wrong proofs expire a challenge',
    { ...issued, status: 'expired' },
    {},
    'challenge_expired',
  ],
  ['a consumed challenge is consumed', { ...issued, status: 'consumed' }, {}, 'challenge_consumed'],
  [
    'a consumed challenge past its time has expired: expiry is checked first',
    { ...issued, status: 'consumed', outlived: true },
    {},
    'challenge_expired',
  ],
  [
    'a consumed challenge of the other route is refused for its kind',
    { ...issued, kind: 'workspace', status: 'consumed' },
    {},
    'challenge_mismatch',
  ],
] as const) {
  test(title, (t) => t.is(judgeChallenge(row, { kind: 'agent', ...sent }).tag, tag))
}

for (const [ageMs, minDurationSecs, seconds] of [
  [0, 2, 2],
  [1, 2, 2],
  [1000, 2, 1],
  [1999, 2, 1],
  [2000, 2, null],
  [0, 0, null],
  [-5000, 2, 7],
] as const) {
  test(`after ${ageMs} ms of ${minDurationSecs} s the remaining time is ${seconds} s`, (t) => {
    t.is(secondsTooEarly({ ageMs, minDurationSecs }), seconds)
  })
}

const candidate: LoginCandidate = {
  agentId: 'agent',
  homeTenantId: 'control',
  fingerprint: 'fingerprint',
  algorithm: 'ed25519',
  role: null,
}
const owner: LoginCandidate = { ...candidate, role: 'owner' }
const elsewhere: LoginCandidate = { ...candidate, homeTenantId: 'elsewhere' }

for (const [title, candidates, named, tenantId] of [
  [
    'an agent logs in to its home',
    [candidate],
    { tenant: controlPlane, by: 'explicit' },
    'control',
  ],
  [
    'a member of the organization logs in to its tenant',
    [owner],
    { tenant, by: 'explicit' },
    'sandbox',
  ],
  ['a stranger does not', [candidate], { tenant, by: 'explicit' }, undefined],
  ['a stranger does not by host either', [candidate], { tenant, by: 'host' }, undefined],
  [
    'an agent that names no tenant means its home',
    [elsewhere],
    { tenant: controlPlane, by: 'control_plane' },
    'elsewhere',
  ],
  [
    'a default tenant gives way to the home of a stranger',
    [candidate],
    { tenant, by: 'default' },
    'control',
  ],
  [
    'an owner at home elsewhere has no business in the control plane',
    [{ ...elsewhere, role: 'owner' }],
    { tenant: controlPlane, by: 'explicit' },
    undefined,
  ],
  [
    'a key registered in two other tenants is ambiguous',
    [elsewhere, { ...elsewhere, homeTenantId: 'third' }],
    { tenant: controlPlane, by: 'control_plane' },
    undefined,
  ],
  [
    'without candidates there is no login',
    [],
    { tenant: controlPlane, by: 'control_plane' },
    undefined,
  ],
] as const) {
  test(title, (t) => t.is(chooseLogin(candidates, named)?.tenantId, tenantId))
}

const spent: OpenChallenge = {
  id: crypto.randomUUID(),
  tenantId: 'sandbox',
  agentId: 'agent',
  homeTenantId: 'control',
  fingerprint: 'fingerprint',
  nonce: 'nonce',
  expiresAt: new Date(0),
  outlived: false,
  agentStatus: 'active',
  granted: [],
  keyStatus: 'active',
  keyAlgorithm: 'ed25519',
  publicKey: new Uint8Array(32),
  tenantStatus: 'active',
  homeStatus: 'active',
  controlPlane: false,
  role: 'owner',
}

for (const [title, change, keyId, allowed] of [
  ['an active member logs in', {}, undefined, true],
  ['naming the challenged key changes nothing', {}, 'fingerprint', true],
  ['naming another key refuses it', {}, 'another', false],
  ['a key deprecated since completes the login', { keyStatus: 'deprecated' }, undefined, true],
  ['a key revoked since refuses it', { keyStatus: 'revoked' }, undefined, false],
  ['an agent suspended since refuses it', { agentStatus: 'suspended' }, undefined, false],
  ['a tenant suspended since refuses it', { tenantStatus: 'suspended' }, undefined, false],
  ['a home tenant suspended since refuses it', { homeStatus: 'suspended' }, undefined, false],
  ['an expired challenge refuses it', { outlived: true }, undefined, false],
  ['a membership removed since refuses it', { role: null }, undefined, false],
  ['the home tenant needs no membership', { role: null, homeTenantId: 'sandbox' }, undefined, true],
] as const) {
  test(title, (t) => t.is(mayLogIn({ ...spent, ...change }, keyId), allowed))
}
