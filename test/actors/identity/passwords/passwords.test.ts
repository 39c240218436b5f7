/** Password hashing, common passwords, and passwords known from breaches. */
import test from 'ava'
import * as fc from 'fast-check'
import * as computeModule from '../../../../actors/identity/passwords/compute.js'
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import {
  type PasswordCompute,
  type PasswordsNeeds,
  checkPasswordEngine,
  passwordPool,
  passwordsActor,
  passwordsHere,
} from '../../../../actors/identity/passwords/actor.js'
import { loadEngine, loadNodeRs, loadNpm } from '../../../../actors/identity/passwords/engine.js'
import { costOf, formatPhc } from '../../../../actors/identity/passwords/phc.js'
import { systemClock } from '../../../../runtime/kernel/clock.js'
import { spawnInline } from '../../../../runtime/kernel/inline.js'
import { openPool } from '../../../../runtime/kernel/threads/pool.js'
import { systemRandom } from '../../../../runtime/kernel/random.js'
import type { ProbeReport } from './probe.js'
import {
  commonPasswords,
  loadCommonPasswords,
} from '../../../../actors/identity/passwords/commonest.js'
import { readFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { openBreaches } from '../../../../actors/identity/passwords/breaches.js'
import { makeCertificate } from '../../../support/service/certificates.js'

const CHEAP = {
  argon2_memory_kib: 256,
  argon2_iterations: 1,
  argon2_parallelism: 1,
  argon2_max_concurrent: 2,
  argon2_waiting_per_tenant_max: 32,
}
const random = systemRandom(systemClock)
const ALONE = { places: 66, groups: { of: () => [] } }
const pool = openPool<typeof import('../../../../actors/identity/passwords/compute.js')>(
  passwordPool(CHEAP, 2),
)
const common = await loadCommonPasswords()
test.after.always(() => pool.close())

function actorWith(
  settings = CHEAP,
  compute: PasswordCompute = pool,
  { places, groups }: Pick<PasswordsNeeds, 'places' | 'groups'> = ALONE,
) {
  const needs = { settings, compute, random, places, groups, breaches: null }
  return spawnInline(passwordsActor, needs).ref
}

async function hashOf(password: string, settings = CHEAP): Promise<string> {
  const outcome = await actorWith(settings).hash({ password })
  if (outcome.tag !== 'hashed') throw new Error(outcome.tag)
  return outcome.phc
}

test('a hash verifies with its password and with no other', async (t) => {
  const phc = await hashOf('correct horse')
  const { ask } = actorWith()
  t.regex(phc, /^\$argon2id\$v=19\$m=256,t=1,p=1\$/)
  t.deepEqual(await ask('verify', { phc, password: 'correct horse' }), {
    tag: 'match',
    needsRehash: false,
  })
  for (const password of ['correct hors', 'correct horse ', 'Correct horse']) {
    t.deepEqual(await ask('verify', { phc, password }), { tag: 'mismatch' })
  }
})

test('the same password hashed twice gives two hashes', async (t) => {
  t.not(await hashOf('twice'), await hashOf('twice'))
})

test('a password typed composed or decomposed is one password', async (t) => {
  const phc = await hashOf('caf\u00e9')
  const outcome = await actorWith().verify({ phc, password: 'cafe\u0301' })
  t.is(outcome.tag, 'match')
})

for (const [title, changed] of [
  ['memory', { argon2_memory_kib: 512 }],
  ['passes', { argon2_iterations: 2 }],
  ['lanes', { argon2_parallelism: 2 }],
] as const) {
  test(`a hash made with other ${title} matches and needs a rehash`, async (t) => {
    const phc = await hashOf('older', { ...CHEAP, ...changed })
    const outcome = await actorWith().verify({ phc, password: 'older' })
    t.deepEqual(outcome, { tag: 'match', needsRehash: true })
  })
}

for (const [title, password] of [
  ['an empty password', ''],
  ['a password of 1,025 bytes', 'x'.repeat(1025)],
  ['a password of 513 two-byte characters', 'é'.repeat(513)],
  ['a password with half a character', 'x\ud800'],
] as const) {
  test(`${title} is not hashed and matches nothing`, async (t) => {
    const { ask } = actorWith()
    t.deepEqual(await ask('hash', { password }), { tag: 'unacceptable' })
    const phc = await hashOf('another')
    t.deepEqual(await ask('verify', { phc, password }), { tag: 'mismatch' })
  })
}

test('a password of exactly 1,024 bytes is hashed', async (t) => {
  const password = 'x'.repeat(1024)
  const phc = await hashOf(password)
  t.is((await actorWith().verify({ phc, password })).tag, 'match')
})

test('an unknown user costs the same work as a known one, and never matches', async (t) => {
  // Not measured by time: the pool's threads have low priority.
  const verified: string[] = []
  const watched: PasswordCompute = {
    run: (name, input, options) => {
      if (name === 'verify') verified.push((input as computeModule.VerifyInput).phc)
      return pool.run(name, input, options)
    },
  }
  const { ask } = actorWith(CHEAP, watched)
  const phc = await hashOf('known')
  t.deepEqual(await ask('verify', { phc, password: 'wrong' }), { tag: 'mismatch' })
  t.deepEqual(await ask('verify', { phc: null, password: 'wrong' }), { tag: 'mismatch' })
  t.deepEqual(await ask('verify', { phc: 'not a hash', password: 'wrong' }), { tag: 'mismatch' })
  t.is(verified.length, 3)
  t.is(verified[0], phc)
  for (const unknown of verified.slice(1)) {
    t.deepEqual(costOf(unknown), costOf(phc))
    t.is(unknown.length, phc.length)
  }
})

for (const stored of [
  '',
  'plaintext',
  '$argon2i$v=19$m=256,t=1,p=1$c2FsdHNhbHRzYWx0$' + 'A'.repeat(43),
  '$argon2id$v=16$m=256,t=1,p=1$c2FsdHNhbHRzYWx0$' + 'A'.repeat(43),
  '$argon2id$v=19$m=4194304,t=1,p=1$c2FsdHNhbHRzYWx0$' + 'A'.repeat(43),
  '$argon2id$v=19$m=256,t=1000000,p=1$c2FsdHNhbHRzYWx0$' + 'A'.repeat(43),
  '$2b$10$abcdefghijklmnopqrstuv',
]) {
  test(`a stored ${stored.slice(0, 36) || 'empty string'} matches nothing`, async (t) => {
    const outcome = await actorWith().verify({ phc: stored, password: 'plaintext' })
    t.deepEqual(outcome, { tag: 'mismatch' })
  })
}

test('each engine verifies what the other one hashed, and both write m,t,p', async (t) => {
  const engines = [await loadNodeRs(), await loadNpm()]
  const cost = { memoryKib: 512, iterations: 2, parallelism: 1 }
  const salt = random.bytes(16)
  const password = () => new Uint8Array(Buffer.from('pässword'))
  const hashes = await Promise.all(engines.map((engine) => engine.hash(password(), salt, cost)))
  t.is(hashes[0], hashes[1])
  t.deepEqual(costOf(hashes[0]!), cost)
  for (const engine of engines) {
    for (const phc of hashes) {
      t.true(await engine.verify(phc, password()), engine.name)
      t.false(await engine.verify(phc, new Uint8Array(8)), engine.name)
    }
  }
})

test('the second engine is used if the first does not load', async (t) => {
  const absent = () => Promise.reject(new Error('no such binary'))
  t.is((await loadEngine()).name, '@node-rs/argon2')
  t.is((await loadEngine(absent)).name, 'argon2')
  await t.throwsAsync(loadEngine(absent, absent), { message: 'no such binary' })
})

test('the start-up check passes on a sound engine and throws on an unsound one', async (t) => {
  t.is(await checkPasswordEngine(pool), '@node-rs/argon2')
  t.is(await checkPasswordEngine(await passwordsHere()), '@node-rs/argon2')
  const unsound = { run: async () => ({ engine: 'broken', sound: false }) } as never
  await t.throwsAsync(checkPasswordEngine(unsound), { message: /broken/ })
})

test('the bytes of a password are wiped after hashing and verifying', async (t) => {
  const password = new Uint8Array(Buffer.from('wipe me'))
  const cost = { memoryKib: 64, iterations: 1, parallelism: 1 }
  const phc = await computeModule.hash({ password, salt: random.bytes(16), cost })
  t.deepEqual(password, new Uint8Array(7))
  const again = new Uint8Array(Buffer.from('wipe me'))
  t.true(await computeModule.verify({ password: again, phc }))
  t.deepEqual(again, new Uint8Array(7))
})

test('cost parameters are parsed as formatted', (t) => {
  const upTo = (max: number) => fc.integer({ min: 1, max })
  fc.assert(
    fc.property(upTo(9_999_999), upTo(9_999), upTo(255), (memoryKib, iterations, parallelism) => {
      const cost = { memoryKib, iterations, parallelism }
      t.deepEqual(costOf(formatPhc(cost, random.bytes(16), random.bytes(32))), cost)
    }),
  )
})

test('hashing at its limit keeps its bounds of memory, waiting and latency', async (t) => {
  const script = fileURLToPath(new URL('./probe.js', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [script])
  const report = JSON.parse(stdout) as ProbeReport
  t.log(report)
  // Two threads with 72 MiB each, plus an allowance for 60 promises and V8.
  t.true(report.peakMib - report.baseMib < 2 * 72 + 32, 'memory')
  t.is(report.hashed + report.busy, 60)
  t.true(report.busy > 30, 'most of the flood is refused')
  t.is(report.busyFirst, report.busy, 'refusals do not wait for a hash')
  t.true(report.medianDelayMs < 100, 'the event loop stays free')
  if (report.nice !== null) {
    t.is(report.nice.filter((nice) => nice === 15).length, 2, 'both threads have low priority')
  }
})

/** Computations that end when they are given up. */
function held(): { compute: PasswordCompute; running: Set<string> } {
  const running = new Set<string>()
  const run = (_: string, __: unknown, { share, signal }: { share: string; signal: AbortSignal }) =>
    new Promise((_, reject) => {
      running.add(share)
      signal.addEventListener('abort', () => {
        running.delete(share)
        reject(signal.reason as Error)
      })
    })
  return { compute: { run } as unknown as PasswordCompute, running }
}

test('a group of tenants holds its part of the places, and another tenant gets one', async (t) => {
  const { compute, running } = held()
  const GROUP = [{ name: 'network of one person', part: 1 / 2 }]
  const groups = { of: (tenant: string) => (tenant.startsWith('free') ? GROUP : []) }
  const ref = actorWith(CHEAP, compute, { places: 8, groups })
  const hash = (share: string) => ref.hash({ password: 'a password' }, { share })
  for (const nth of [1, 2, 3, 4]) void hash(`free ${nth}`)
  t.deepEqual(await hash('free 5'), { tag: 'busy' })
  const given = [hash('paying'), hash('paying'), hash('paying'), hash('paying')]
  void hash('other')
  t.deepEqual(await given[0], { tag: 'busy' }, 'the tenant that holds most gives a place back')
  t.true(running.has('other'))
})

for (const password of [
  'password1234',
  'Password1234',
  'PASSWORD1234',
  'qwertyuiop12',
  '123456789012',
  '1qaz2wsx3edc',
  'administrator',
  'Administrator',
  'iloveyou1234',
  'welcome12345',
  'Password2026!',
  '!!!password!!',
  '\uff50assword1234',
]) {
  test(`${password} is among the most common passwords`, (t) => t.true(common.has(password)))
}

for (const password of [
  'correct horse battery staple',
  'a password of the harbour master',
  'the old password of ada',
  'dragon-of-the-harbour',
  'dragon84719283',
  '8f3kd92jfkq0',
]) {
  test(`${password} is not`, (t) => t.false(common.has(password)))
}

test('only the first 10,000 count as the core of a longer password', (t) => {
  const names = Array.from({ length: 10_001 }, (_, n) => `word${n.toString(36)}x`)
  const few = commonPasswords(names)
  t.true(few.has(`${names[9_999]!}2026!`))
  t.false(few.has(`${names[10_000]!}2026!`))
})

// Why a breached-password check failed, as reasons for the log.

const certificate = makeCertificate()
let answer: RequestListener
const server = createServer(
  { key: readFileSync(certificate.keyPath), cert: readFileSync(certificate.certPath) },
  (request, response) => answer(request, response),
)
test.before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
test.after.always(() => {
  server.closeAllConnections()
  server.close()
  certificate.remove()
})

/** The failure reasons that `check` reports for a password at this URL. */
async function failuresAt(url: string, privateNetworks = true): Promise<[string, ...string[]]> {
  const breaches = openBreaches({
    url,
    settings: {
      egress_allow_private_networks: privateNetworks,
      egress_allow_non_standard_ports: true,
      egress_ca_pem_path: certificate.certPath,
      egress_dns_overrides: {},
      own_names: [],
    },
  })
  const reasons: string[] = []
  try {
    const password = new TextEncoder().encode('password')
    const verdict = await breaches.check(password, (reason) => reasons.push(reason))
    return [verdict, ...reasons]
  } finally {
    await breaches.close()
  }
}
/** Retries if a loaded machine responds too late. */
async function failuresInTime(url: string, expected?: string) {
  const tries = expected === 'timeout' ? 1 : 20
  let told = await failuresAt(url)
  for (let n = 1; n < tries && told[1] === 'timeout'; n += 1) told = await failuresAt(url)
  return told
}
const here = () => `https://localhost:${(server.address() as AddressInfo).port}`

for (const [what, listener, reason] of [
  ['stalls', () => undefined, 'timeout'],
  ['fails', (_, response) => response.writeHead(500).end(), 'status_500'],
  [
    'sends elsewhere',
    (_, response) => response.writeHead(302, { location: '/' }).end(),
    'status_302',
  ],
  ['babbles', (_, response) => response.end('<html>'), 'no_list_of_hashes'],
  ['does not end', (_, response) => response.end('0'.repeat(200_000)), 'too_long'],
] as const satisfies readonly (readonly [string, RequestListener, string])[]) {
  test.serial(`a range service that ${what}: ${reason}`, async (t) => {
    answer = listener
    t.deepEqual(await failuresInTime(here(), reason), ['unknown', reason])
  })
}

test.serial('an unreachable or forbidden service', async (t) => {
  t.deepEqual(await failuresInTime('https://localhost:1'), ['unknown', 'connection_refused'])
  t.deepEqual(await failuresAt('https://127.0.0.1:1', false), ['unknown', 'address_refused'])
})

test.serial('a verdict reports no failure', async (t) => {
  answer = (_, response) => response.end(`${'0'.repeat(35)}:0`)
  t.deepEqual(await failuresInTime(here()), ['clean'])
})
