/** Rules of federated sign-in. */
import test from 'ava'
import { parseEmail } from '../../../../../../actors/domain/email.js'
import * as fc from 'fast-check'
import {
  domainOf,
  readDomain,
  readEmail,
} from '../../../../../../actors/platform/mail/public-domains.js'
import {
  type Arrival,
  type Candidate,
  admission,
  decide,
  evidenceOf,
  vouchingOf,
} from '../../../../../../actors/identity/sign-in/ways/federated/rules.js'
import { authTimeOf } from '../../../../../../actors/identity/sign-in/ways/federated/complete.js'
import type {
  UpstreamClient,
  UpstreamFault,
} from '../../../../../../actors/identity/sign-in/ways/federated/client.js'
import { fairClient } from '../../../../../../actors/identity/sign-in/ways/federated/fair-client.js'
import type { Provider } from '../../../../../../actors/identity/sign-in/ways/federated/providers.js'
import { ShareCounts } from '../../../../../../runtime/kernel/fairness/fair-share.js'

const ADA = parseEmail('ada@example.org')!
const candidate: fc.Arbitrary<Candidate> = fc.record({
  id: fc.constant('candidate'),
  active: fc.boolean(),
  emailVerified: fc.boolean(),
  knownToProvider: fc.boolean(),
})
const arrival: fc.Arbitrary<Arrival> = fc.record({
  linked: fc.option(fc.constant('linked'), { nil: undefined }),
  candidate: fc.option(candidate, { nil: undefined }),
  email: fc.option(fc.constant(ADA), { nil: null }),
  vouches: fc.constantFrom('none', 'silent', 'verified'),
  mayLink: fc.boolean(),
  mayCreate: fc.boolean(),
  isForeign: fc.boolean(),
})

test('a linked identity is its account, whatever address it has', (t) => {
  fc.assert(
    fc.property(arrival, (one) => {
      const linked = { ...one, linked: 'linked' }
      t.deepEqual(decide(linked), { tag: 'use', accountId: 'linked' })
    }),
  )
})

test('an address leads to an account only if the provider is trusted for it and may link', (t) => {
  let links = 0
  fc.assert(
    fc.property(arrival, (one) => {
      const decision = decide(one)
      if (decision.tag !== 'link') return
      links += 1
      const found = one.candidate!
      t.is(decision.accountId, found.id)
      t.is(one.linked, undefined)
      t.not(one.email, null)
      t.not(one.vouches, 'none')
      t.false(one.isForeign)
      t.true(one.mayLink || (!found.emailVerified && one.mayCreate))
      if (!found.emailVerified) return
      t.is(one.vouches, 'verified')
      t.false(found.knownToProvider)
    }),
    { numRuns: 2_000 },
  )
  t.true(links > 0)
})

test('an account with an unverified address blocks no sign-in', (t) => {
  fc.assert(
    fc.property(arrival, candidate, (one, squatted) => {
      const at = { ...one, linked: undefined, mayLink: true }
      const free = decide({ ...at, candidate: undefined, mayCreate: true })
      const taken = decide({ ...at, candidate: { ...squatted, emailVerified: false } })
      t.is(taken.tag === 'refuse', free.tag === 'refuse')
    }),
  )
})

test('a provider not trusted for an address learns nothing about the account', (t) => {
  fc.assert(
    fc.property(arrival, (one) => {
      const foreign = { ...one, linked: undefined, isForeign: true, email: ADA }
      t.deepEqual(decide(foreign), { tag: 'refuse', fault: 'not_member' })
    }),
  )
})

for (const [said, ofDeployment, ownsDomain, worth] of [
  [true, true, false, 'verified'],
  [undefined, true, false, 'none'],
  ['true', true, false, 'none'],
  [true, false, false, 'none'],
  [undefined, false, false, 'none'],
  [true, false, true, 'verified'],
  [undefined, false, true, 'silent'],
  [false, false, true, 'none'],
  [false, true, false, 'none'],
] as const) {
  const who = ofDeployment ? 'the deployment' : ownsDomain ? 'the owner' : 'a stranger'
  test(`email_verified ${String(said)} by a provider of ${who} of the domain: ${worth}`, (t) => {
    t.is(vouchingOf(said, { ofDeployment, ownsDomain }), worth)
  })
}

test('an account is created only for a trusted, free address with provisioning enabled', (t) => {
  let made = 0
  fc.assert(
    fc.property(arrival, (one) => {
      const decision = decide(one)
      if (decision.tag !== 'create') return
      made += 1
      t.is(one.candidate, undefined)
      t.true(one.mayCreate)
      t.not(one.vouches, 'none')
      t.false(one.isForeign)
    }),
    { numRuns: 2_000 },
  )
  t.true(made > 0)
})

for (const [accountActive, addressProved, status, mayJoin, verdict] of [
  [true, true, 'active', false, 'admit'],
  [true, false, 'active', false, 'admit'],
  [true, true, 'invited', false, 'admit'],
  [true, false, 'invited', true, 'invited'],
  [true, false, 'pre_provisioned', false, 'admit'],
  [true, true, null, true, 'join'],
  [true, false, null, true, 'unverified_email'],
  [true, true, null, false, 'not_member'],
  [true, false, null, false, 'not_member'],
  [true, true, 'removed', true, 'not_member'],
  [true, true, 'suspended', true, 'suspended'],
  [false, true, 'active', true, 'suspended'],
  [false, true, null, true, 'suspended'],
] as const) {
  const account = `an account (${accountActive}, address ${addressProved})`
  test(`${account} that is ${status}, joining ${mayJoin}: ${verdict}`, (t) => {
    t.is(admission({ accountActive, addressProved, status }, mayJoin), verdict)
  })
}

test('two factors count only with a trusted acr, and only known methods are kept', (t) => {
  const words = fc.oneof(fc.string(), fc.constantFrom('pwd', 'otp', 'hwk', 'mfa', 'fed'))
  const claims = fc.tuple(fc.anything(), fc.oneof(fc.array(words), fc.anything()))
  fc.assert(
    fc.property(claims, fc.array(fc.string()), ([acr, amr], trusted) => {
      const { level, amr: told } = evidenceOf(acr, amr, trusted)
      t.is(level, typeof acr === 'string' && trusted.includes(acr) ? 2 : 1)
      t.is(told[0], 'fed')
      t.is(new Set(told).size, told.length)
      t.is(told.includes('mfa'), level === 2)
    }),
  )
  t.deepEqual(evidenceOf('gold', ['pwd', 'x', 7, 'otp', 'pwd'], ['gold']), {
    level: 2,
    amr: ['fed', 'pwd', 'otp', 'mfa'],
  })
})

test('auth_time is never in the future, and its absence is not now', (t) => {
  const now = new Date(Date.UTC(2030, 0, 1))
  const times = fc.date({
    min: new Date(0),
    max: new Date(Date.UTC(2060, 0, 1)),
    noInvalidDate: true,
  })
  fc.assert(
    fc.property(times, (stated) => {
      t.true(authTimeOf(stated, null, now) <= now)
    }),
  )
  t.true(now.getTime() - authTimeOf(null, null, now).getTime() >= 3_600_000)
})

for (const [text, domain] of [
  ['Example.ORG', 'example.org'],
  ['example.org.', 'example.org'],
  ['Bücher.example', 'xn--bcher-kva.example'],
  ['ｅｘａｍｐｌｅ.org', 'example.org'],
  ['example.org..', undefined],
  ['.example.org', undefined],
  ['example', undefined],
  ['192.0.2.1', undefined],
  ['0x7f.1', undefined],
  ['[::1]', undefined],
  ['example.org/x', undefined],
  ['example.org:443', undefined],
  ['exam%70le.org', undefined],
  ['*.example.org', undefined],
  ['', undefined],
] as const) {
  test(`the domain ${text} is ${domain}`, (t) => {
    t.is(readDomain(text), domain)
  })
}

test('reading a normalized domain returns it unchanged', (t) => {
  fc.assert(
    fc.property(fc.oneof(fc.domain(), fc.string({ unit: 'grapheme' })), (text) => {
      const read = readDomain(text)
      if (read !== undefined) t.is(readDomain(read), read)
    }),
  )
})

test('an address is a string that ends with a public domain', (t) => {
  for (const bad of [
    undefined,
    null,
    7,
    ['ada@example.org'],
    '',
    'ada',
    '@example.org',
    'ada@',
    'ada@localhost',
    'ada@victim.example@example.org',
    'ada @example.org',
    'ada@example.org\n',
    'ada\u0000@example.org',
    'ada\u202e@example.org',
    'ada@example.org,bob@example.org',
    '<ada@example.org>',
    `${'a'.repeat(65)}@example.org`,
  ]) {
    t.is(readEmail(bad), undefined, String(bad))
  }
  t.is<string | undefined, string | undefined>(readEmail('Ada+x@Example.org'), 'Ada+x@example.org')
  fc.assert(
    fc.property(fc.emailAddress(), (email) => {
      const read = readEmail(email)
      if (read !== undefined)
        t.is(domainOf(read), email.slice(email.indexOf('@') + 1).toLowerCase())
    }),
  )
})

// Sign-ins that wait for the providers of tenants, within their share.

type Sent = Parameters<UpstreamClient['finish']>
const rest = [{}, new URLSearchParams()] as unknown as [Sent[1], Sent[2]]
const of = (tenantId: string | null) => ({ tenantId }) as Provider

/** A client whose providers answer when the test says so. */
function stage() {
  const waiting: string[] = []
  let answer: (fault: UpstreamFault) => void = () => undefined
  const answered = new Promise<UpstreamFault>((resolve) => (answer = resolve))
  const silent: Pick<UpstreamClient, 'finish'> = {
    finish: ({ tenantId }: Provider) => {
      waiting.push(tenantId ?? '')
      return answered
    },
  }
  const groups = { of: () => [{ name: 'sandboxes', part: 1 / 2 }] }
  const client = fairClient(silent as UpstreamClient, groups, new ShareCounts())
  const signIns = (tenantId: string | null, count: number) =>
    Array.from({ length: count }, () => client.finish(of(tenantId), ...rest))
  return { waiting, answer, signIns }
}
const DENIED = { tag: 'fault', fault: 'denied', detail: 'at last' } as const
const BUSY = { tag: 'fault', fault: 'unavailable', detail: 'share_exhausted' } as const

test('a tenant with a silent provider holds 24 sign-ins, and further ones fail immediately', async (t) => {
  const { waiting, answer, signIns } = stage()
  const hostile = signIns('hostile', 40)
  for (const over of hostile.slice(24)) t.deepEqual(await over, BUSY)
  const honest = signIns('honest', 1)
  answer(DENIED)
  for (const ended of [...hostile.slice(0, 24), ...honest]) t.deepEqual(await ended, DENIED)
  t.is(waiting.length, 25)
})

test('a tenant without a place takes one from a group that holds half of them', async (t) => {
  const { waiting, answer, signIns } = stage()
  const hostile = ['a', 'b', 'c', 'd'].map((tenant) => signIns(tenant, 24))
  const [honest] = signIns('honest', 1)
  // The oldest of the largest holder made room.
  t.deepEqual(await hostile[0]![0], BUSY)
  t.true(waiting.includes('honest'))
  answer(DENIED)
  t.deepEqual(await honest, DENIED)
})

test('providers of the deployment are not bounded', async (t) => {
  const { answer, signIns } = stage()
  const all = signIns(null, 250)
  answer(DENIED)
  for (const ended of all) t.deepEqual(await ended, DENIED)
})
