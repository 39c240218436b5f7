/** Each tenant signs its credentials with its own keys, and lists them and no others. */
import { tmpdir } from 'node:os'
import test from 'ava'
import { Command } from 'commander'
import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose'
import { openKeyTools } from '../../../../runtime/cli/key-tools.js'
import { keysCommand } from '../../../../runtime/cli/keys.js'
import type { Json } from '../../../support/api.js'
import { sharedApi } from '../../../support/service.js'
import { sql } from '../../../support/storage/sql.js'
import {
  credentialsOf,
  issuingTenant,
  type IssuingTenant,
  offeredToken,
  requestCredential,
} from '../../../support/oauth/wallet.js'

const { api, running } = await sharedApi('plain')

async function keysAt(at: string): Promise<JSONWebKeySet> {
  const { body } = await api.get(`${at}/.well-known/jwks.json`).gives(200)
  return body as unknown as JSONWebKeySet
}
const kidsOf = ({ keys }: JSONWebKeySet) => keys.map(({ kid }) => String(kid))

/** The JWT of a new credential. */
async function issued(tenant: IssuingTenant): Promise<string> {
  const token = await offeredToken(api, tenant)
  const [credential = ''] = credentialsOf(await requestCredential(api, tenant, token))
  return credential.split('~')[0]!
}
const kidOf = (jwt: string) => String(decodeProtectedHeader(jwt).kid)

test('credentials, status lists and signed metadata verify with the own keys of their tenant only', async (t) => {
  const tenants = [await issuingTenant(api), await issuingTenant(api)]
  const sets = await Promise.all(tenants.map(({ at }) => keysAt(at)))
  const shared = kidsOf(await keysAt(''))
  const all = [...sets.flatMap(kidsOf), ...shared]
  t.is(new Set(all).size, all.length, 'no key is in two sets')
  for (const [at, tenant] of tenants.entries()) {
    const jwt = await issued(tenant)
    const { payload } = await jwtVerify(jwt, createLocalJWKSet(sets[at]!))
    await t.throwsAsync(jwtVerify(jwt, createLocalJWKSet(sets[1 - at]!)))
    const { uri } = (payload['status'] as Record<string, { uri: string }>)['status_list']!
    const list = await (await fetch(uri.replace(running.issuer, running.baseUrl))).text()
    const metadata = await fetch(
      `${running.baseUrl}/.well-known/openid-credential-issuer${tenant.at}`,
      { headers: { accept: 'application/jwt' } },
    )
    for (const signed of [list, await metadata.text()]) {
      await t.notThrowsAsync(jwtVerify(signed, createLocalJWKSet(sets[at]!)))
    }
  }
})

test('the set has the key of the service while credentials that it signed live', async (t) => {
  const shared = kidsOf(await keysAt(''))
  const after = [
    ["now() + interval '1 day'", true],
    ["now() - interval '1 second'", false],
  ] as const
  for (const [end, isListed] of after) {
    const tenant = await issuingTenant(api)
    await issued(tenant)
    await sql(
      running,
      `update issued_credentials set kid = null, expires_at = ${end} where tenant_id = $1`,
      [tenant.tenantId],
    )
    const found = kidsOf(await keysAt(tenant.at)).filter((kid) => shared.includes(kid))
    t.is(found.length > 0, isListed, end)
    t.false(shared.includes(kidOf(await issued(tenant))), 'it signs nothing more')
  }
})

test('keys of a tenant rotate after jwt.key_rotation_days, and the retired one stays listed', async (t) => {
  const tenant = await issuingTenant(api)
  const before = await issued(tenant)
  await sql(running)`
    update signing_keys set created_at = created_at - interval '400 days',
    current_since = current_since - interval '400 days' where tenant_id = ${tenant.tenantId}`
  // The process learns of the change after its commit.
  let after = before
  while (kidOf(after) === kidOf(before)) after = await issued(tenant)
  const set = await keysAt(tenant.at)
  for (const jwt of [before, after]) await t.notThrowsAsync(jwtVerify(jwt, createLocalJWKSet(set)))
  const rows = await sql<Json>(running)`
    select state, private_sealed is null as gone from signing_keys
    where tenant_id = ${tenant.tenantId}`
  const states = rows.map(({ state, gone }) => [state, gone])
  t.deepEqual(states.toSorted(), [
    ['current', false],
    ['next', false],
    ['retired', true],
  ])
})

test('svc keys list has the keys of tenants', async (t) => {
  const tenant = await issuingTenant(api)
  const kids = kidsOf(await keysAt(tenant.at))
  const environment = { DATABASE_URL: running.db.url, ...running.kms.environment }
  const run = async (...words: string[]) => {
    let said = ''
    const program = new Command('svc')
    keysCommand(program, {
      open: () => openKeyTools({ environment, cwd: tmpdir(), uid: process.getuid?.() }),
      out: (text) => (said += text),
      err: (text) => (said += text),
      exitWith: (code) => t.is(code, 0, said),
    })
    await program.parseAsync(['keys', 'list', ...words], { from: 'user' })
    return said
  }
  const listed = JSON.parse(await run('--json')) as Record<string, Json[]>
  const own = listed['tenant_signing_keys']!.filter(({ tenant_id: of }) => of === tenant.tenantId)
  t.deepEqual(own.map(({ kid }) => kid).toSorted(), kids.toSorted())
  for (const key of own) t.like(key, { tenant_slug: tenant.slug, algorithm: 'ES256' })
  t.false(listed['signing_keys']!.some(({ kid }) => kids.includes(String(kid))))
  t.regex(await run(), /^SIGNING KEY .* TENANT$/m)
})

test('processes and concurrent first uses make one set of keys', async (t) => {
  const tenant = await issuingTenant(api)
  const sets = await Promise.all(Array.from({ length: 8 }, () => keysAt(tenant.at)))
  t.is(new Set(sets.map((set) => kidsOf(set).join())).size, 1)
  t.is(sets[0]!.keys.length, 2, 'the current key and the next')
})
