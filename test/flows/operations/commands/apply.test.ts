/** `svc apply` as an operator uses it: docs/guides/operations/apply.md. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { documentOf, InvalidFile } from '../../../../runtime/cli/apply/document.js'
import type { Json, Workspace } from '../../../support/api.js'
import { trustOfPrograms } from '../../../support/service/trust.js'
import { sharedApi } from '../../../support/service.js'

const MAIN = new URL('../../../../runtime/main.js', import.meta.url).pathname
const EXAMPLE = new URL('../../../../../docs/examples/apply/shop.toml', import.meta.url).pathname
const { api, running } = await sharedApi('enterprise')
const folder = mkdtempSync(join(tmpdir(), 'svc-apply-'))
test.after.always(() => rmSync(folder, { recursive: true, force: true }))

type Ran = { readonly code: number | null; readonly out: string; readonly err: string }

/** Runs the command while the service runs in this process. */
async function apply(
  { token, operator }: Pick<Workspace, 'token' | 'operator'>,
  file: string,
  ...words: readonly string[]
): Promise<Ran> {
  const tokens = ['--token-env', 'TENANT_TOKEN', '--operator-token-env', 'OPERATOR_TOKEN']
  const args = [MAIN, 'apply', '-f', file, '--url', running.baseUrl, ...tokens, ...words]
  const child = spawn(process.execPath, args, {
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      TENANT_TOKEN: token,
      OPERATOR_TOKEN: operator,
      SHOP_SSO_SECRET: 'a secret of the provider',
      ...trustOfPrograms(),
    },
  })
  const text = { out: '', err: '' }
  child.stdout.on('data', (chunk: Buffer) => (text.out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (text.err += chunk.toString()))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return { code, ...text }
}

const written = (name: string, content: string) => {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}
const summaryOf = ({ out }: Ran) => (JSON.parse(out) as { summary: Json }).summary
const rowsOf = async (path: string, token: string) => (await api.list(path, token)).rows
const operatorToken = async ({ key, agentId, controlPlane }: Workspace) => {
  const answer = await api.login(key, { agent_id: agentId, tenant_id: controlPlane })
  return String(answer.body['access_token'])
}
const applications = async ({ token }: Workspace) =>
  (await rowsOf('/api/v1/applications', token)).map(({ name }) => name).toSorted()

test('the example file is planned, applied once, and then changes nothing', async (t) => {
  const made = await api.workspace()
  const before = await applications(made)
  const plan = await apply(made, EXAMPLE, '--plan', '--json', '--detailed-exitcode')
  t.is(plan.code, 2, plan.err)
  t.deepEqual(summaryOf(plan), { create: 6, update: 1, delete: 0, unchanged: 0 })
  t.deepEqual(await applications(made), before, 'a plan changes nothing')
  t.false(plan.out.includes('a secret of the provider'))

  const untold = await apply(made, EXAMPLE)
  t.is(untold.code, 1)
  t.regex(untold.err, /add --secrets-to FILE or --json/)
  t.deepEqual(await applications(made), before)

  const secrets = join(folder, 'secrets.json')
  const applied = await apply(made, EXAMPLE, '--secrets-to', secrets)
  t.is(applied.code, 0, applied.err)
  t.regex(applied.out, /\+ create +applications "Shop"\n/)
  t.regex(applied.out, /Applied: 6 created, 1 updated, 0 deleted, 0 unchanged\.\n$/)
  t.is(statSync(secrets).mode & 0o777, 0o600)
  const stored = JSON.parse(readFileSync(secrets, 'utf8')) as Record<string, Record<string, Json>>
  t.deepEqual(Object.keys(stored), ['applications', 'webhooks'])
  const shop = stored['applications']!['Shop']!
  t.false(`${applied.out}${applied.err}`.includes(String(shop['secret'])))
  const introspected = await api.form('/oauth/introspect', {
    token: 'none',
    client_id: String(shop['id']),
    client_secret: String(shop['secret']),
  })
  t.is(introspected.status, 200, 'the secret belongs to the client')

  const [orders] = await rowsOf('/api/v1/api-resources', made.token)
  t.deepEqual(orders!['client_ids'], [shop['id']], 'an application is named before it exists')
  const [provider] = await rowsOf('/api/v1/sso/providers', made.token)
  t.true(provider!['has_client_secret'])

  const nothing = await apply(made, EXAMPLE, '--dry-run', '--detailed-exitcode')
  t.is(nothing.code, 0, nothing.err)
  t.regex(nothing.out, /Plan: 0 to create, 0 to update, 0 to delete, 7 unchanged\./)
})

test('drift is shown and corrected, and other members stay', async (t) => {
  const made = await api.workspace()
  const redirect_uris = ['https://a.example/x', 'https://a.example/y']
  const file = written(
    'drift.json',
    JSON.stringify({ applications: [{ name: 'Drifting', redirect_uris, require_pkce: true }] }),
  )
  const first = await apply(made, file, '--json')
  t.is(first.code, 0, first.err)
  const { secrets, changes } = JSON.parse(first.out) as { secrets: Json[]; changes: Json[] }
  t.is(secrets.length, 1)
  t.is(changes[0]!['id'], secrets[0]!['id'])
  t.is(secrets[0]!['name'], 'Drifting')

  const path = `/api/v1/applications/${String(secrets[0]!['id'])}`
  const answer = await api.put(path, made.token, {
    name: 'Drifting',
    redirect_uris: ['https://evil.example/'],
    require_pkce: true,
    logo_uri: 'https://a.example/logo.png',
  })
  t.is(answer.status, 200)
  const drift = await apply(made, file, '--plan')
  t.regex(
    drift.out,
    /redirect_uris: \["https:\/\/evil\.example\/"\] -> \["https:\/\/a\.example\/x","https:\/\/a\.example\/y"\]/,
  )
  const corrected = await apply(made, file)
  t.is(corrected.code, 0, corrected.err)
  const { body } = await api.get(path, made.token)
  t.deepEqual(body['redirect_uris'], redirect_uris)
  t.is(body['logo_uri'], 'https://a.example/logo.png', 'the file does not name it')
})

test('--prune deletes what the file does not have, only in the kinds of the file', async (t) => {
  const made = await api.workspace()
  const webhooks = (...urls: string[]) =>
    JSON.stringify({ webhooks: urls.map((url) => ({ url, event_types: ['*'] })) })
  const both = written('both.json', webhooks('https://one.example/', 'https://two.example/'))
  t.is((await apply(made, both, '--json')).code, 0)
  const before = await applications(made)
  const one = written('one.json', webhooks('https://one.example/'))
  t.deepEqual(summaryOf(await apply(made, one, '--json')), {
    create: 0,
    update: 0,
    delete: 0,
    unchanged: 1,
  })
  const pruned = await apply(made, one, '--prune')
  t.is(pruned.code, 0, pruned.err)
  t.regex(pruned.out, /- delete +webhooks "https:\/\/two\.example\/"/)
  const left = await rowsOf('/api/v1/webhooks', made.token)
  t.deepEqual(
    left.map(({ url }) => url),
    ['https://one.example/'],
  )
  t.deepEqual(await applications(made), before)
})

test('one invalid resource: nothing changes', async (t) => {
  const made = await api.workspace()
  const before = await applications(made)
  const misspelt = written(
    'misspelt.toml',
    '[[applications]]\nname = "Good"\nredirect_uris = []\n\n[[applications]]\nname = "Bad"\nredirect_uri = []\n',
  )
  const unknown = await apply(made, misspelt, '--json')
  t.is(unknown.code, 1)
  t.deepEqual((JSON.parse(unknown.out) as Json)['faults'], [
    'line 7: applications[1].redirect_uri: unknown member. Did you mean redirect_uris?',
  ])
  // The schema accepts this one, and the rules of clients do not.
  const wrong = written(
    'wrong.toml',
    '[[applications]]\nname = "Good"\n[[applications]]\nname = "Bad"\nredirect_uris = ["https://b.example/#x"]\n',
  )
  const refused = await apply(made, wrong, '--json')
  t.is(refused.code, 1)
  t.regex(refused.out, /line 5: applications\[1\]\.redirect_uris\[0\]: The URI /)
  // Only the service knows the limits of the deployment.
  const later = written(
    'later.json',
    JSON.stringify({
      applications: [{ name: 'Good' }],
      tenant_settings: { logout_revokes_offline: true },
      organization_policies: [{ organization_id: made.organizationId, max_members: 1_000_000 }],
    }),
  )
  const operator = await operatorToken(made)
  const secrets = join(folder, 'undone.json')
  const undone = await apply({ ...made, operator }, later, '--secrets-to', secrets)
  t.is(undone.code, 1)
  t.regex(
    undone.err,
    /PATCH \/api\/v1\/organizations\/\S+ answered 400: max_members may be at most/,
  )
  t.regex(undone.err, /nothing is changed/)
  t.deepEqual(await applications(made), before)
  t.is((await api.get('/api/v1/tenant/settings', made.token)).body['logout_revokes_offline'], false)
  t.deepEqual(JSON.parse(readFileSync(secrets, 'utf8')), { applications: {} })
})

test('limits of an organization need the token of its operator', async (t) => {
  const made = await api.workspace()
  const file = written(
    'policy.toml',
    `[[organization_policies]]\norganization_id = "${made.organizationId}"\nmax_members = 7\n`,
  )
  const operator = await operatorToken(made)
  const applied = await apply({ ...made, operator }, file)
  t.is(applied.code, 0, applied.err)
  t.regex(applied.out, /max_members: \d+ -> 7/)
})

test('every fault of a file is named with its place', (t) => {
  const faults = (name: string, text: string) =>
    t.throws(() => documentOf(name, text, {}), { instanceOf: InvalidFile })!.faults
  t.deepEqual(faults('x.json', '{"aplications": [], "webhooks": {}}'), [
    'aplications: unknown member. Did you mean applications?',
    'webhooks: must be a list, [[webhooks]]',
  ])
  t.deepEqual(faults('x.yaml', 'a: b'), ['x.yaml: the name must end in .toml or .json'])
  t.regex(faults('x.toml', 'a = \n')[0]!, /^line 1: /)
  const twice = '[[applications]]\nname = "A"\n[[applications]]\nname = "A"\n'
  t.deepEqual(faults('x.toml', twice), [
    'line 3: applications[1]: name "A" is also at line 1: applications[0]',
  ])
  const nested = '[tenant_settings.branding]\ncolour = "#000000"\n'
  t.deepEqual(faults('x.toml', nested), [
    'line 2: tenant_settings.branding.colour: unknown member. Did you mean color?',
  ])
  const open =
    '[[sso_providers]]\nname = "A"\nissuer = "https://a.example"\nclient_id = "c"\nclient_secret = "x"\n'
  t.deepEqual(faults('x.toml', open), [
    'line 5: sso_providers[0].client_secret: must be { env = "NAME" } or { file = "PATH" }, never the secret itself',
  ])
})
