/**
 * A process is killed (SIGKILL) at any moment of a refresh: the upstream's grace period compensates for
 * a lost response. A response that has arrived is not lost.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { request } from 'undici'
import { svcBeside } from '../../flows/vault/command.js'
import { UPSTREAM_CERT, UPSTREAM_NAME } from '../../actors/vault/egress/loopback-tls.js'
import { egressHouse, settingOf } from '../../support/vault/egress.js'
import { sql } from '../../support/storage/sql.js'
import { freePort } from '../../support/service.js'
import { until } from '../../support/service/watch.js'
import { tokenUpstream } from '../../support/vault/token-upstream.js'

const ACCESS = 'urn:ietf:params:oauth:token-type:access_token'

/** A service, and a process of its deployment that dies during a refresh. Another file may not share it. */
async function crash(t: ExecutionContext) {
  t.timeout(240_000)
  const resources = await egressHouse({ environment: { SVC_DATABASE__MAX_CONNECTIONS: '6' } })
  const upstream = await tokenUpstream()
  const folder = await mkdtemp(join(tmpdir(), 'svc-refresh-'))
  t.teardown(async () => {
    await upstream.close()
    await resources.end()
    await rm(folder, { recursive: true })
  })
  const config = join(folder, 'svc.toml')
  const ca = join(folder, 'ca.pem')
  await writeFile(config, `[vault.egress_dns_overrides]\n"${UPSTREAM_NAME}" = "127.0.0.1"\n`)
  await writeFile(ca, UPSTREAM_CERT)
  const port = String(await freePort())
  const doomed = await svcBeside(t, resources.running, {
    SVC_CONFIG_FILE: config,
    SVC_SERVER__PORT: port,
    SVC_VAULT__EGRESS_ALLOW_PRIVATE_NETWORKS: 'true',
    SVC_VAULT__EGRESS_ALLOW_NON_STANDARD_PORTS: 'true',
    SVC_VAULT__EGRESS_CA_PEM_PATH: ca,
  })
  const kill = async () => {
    doomed.child.kill('SIGKILL')
    await doomed.ended()
  }
  /** A request to the process that dies. */
  const ask = (path: string, type: string, body: string, more: Record<string, string> = {}) =>
    request(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { host: new URL(resources.running.issuer).host, 'content-type': type, ...more },
      body,
    })
  return { resources, upstream, kill, ask }
}

test('a process killed during a refresh loses nothing that the upstream returns again', async (t) => {
  const { resources, upstream, kill, ask } = await crash(t)
  const { db } = resources.running
  const setting = await settingOf(resources, {
    credential_type: 'oauth2',
    auth_scheme: undefined,
    non_exportable: false,
    secret: JSON.stringify({ token_url: upstream.url, client_id: 'c', refresh_token: 'rt-0' }),
  })
  const form = {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: setting.delegated,
    subject_token_type: ACCESS,
    actor_token: setting.direct,
    actor_token_type: ACCESS,
    resource: `urn:svc:vault:credential:${setting.credentialId}`,
  }
  // The upstream has rotated, and the process dies before it gets the response.
  let given = 0
  upstream.answer(async ({ form: asked }) => {
    given += 1
    if (given === 1) await kill()
    // The upstream accepts the previous token for a while, and returns the same response.
    return asked['refresh_token'] === 'rt-0'
      ? {
          body: {
            access_token: 'at-1',
            token_type: 'bearer',
            expires_in: 3600,
            refresh_token: 'rt-1',
          },
        }
      : { status: 400, body: { error: 'invalid_grant' } }
  })
  const fields = new URLSearchParams(form).toString()
  await t.throwsAsync(ask('/oauth/token', 'application/x-www-form-urlencoded', fields))
  t.is(given, 1)
  const [held] = await sql<{ refresher: string | null; token: unknown }>(db.database)`
    select refresher, token from vault_managed_tokens
    where credential_id = ${setting.credentialId}`
  t.truthy(held?.refresher, 'the dead process has the lease')
  t.is(held?.token, null)
  // Later the lease of the dead process has expired.
  await sql(db.database)`
    update vault_managed_tokens set refreshing_until = now()
    where credential_id = ${setting.credentialId}`
  const answer = await resources.api.form('/oauth/token', form)
  t.is(answer.body['access_token'], 'at-1', JSON.stringify(answer.body))
  t.is(upstream.tokenRequests.at(-1)!.form['refresh_token'], 'rt-0')
  upstream.answer(({ form: asked }) => ({
    body: { access_token: asked['refresh_token'], token_type: 'bearer', expires_in: 3600 },
  }))
  await sql(db.database)`
    update vault_managed_tokens set expires_at = now()
    where credential_id = ${setting.credentialId}`
  t.is((await resources.api.form('/oauth/token', form)).body['access_token'], 'rt-1')
})

test('an answer that has arrived is stored by another process, and its refresh token used', async (t) => {
  const { resources, upstream, kill, ask } = await crash(t)
  const { api, running } = resources
  const { database } = running.db
  // Each refresh token works once, without grace.
  const setting = await settingOf(resources, {
    credential_type: 'custom',
    auth_scheme: 'oauth2_refresh',
    secret: { token_url: upstream.url, client_id: 'c', refresh_token: 'rt-0' },
  })
  const { credentialId, delegated } = setting
  const call = JSON.stringify({ credential_id: credentialId, url: `${upstream.origin}/api` })
  let release: () => void = () => {}
  let holding: Promise<unknown> = Promise.resolve()
  upstream.answer(async () => {
    // From now on the process cannot store the tokens.
    const released = new Promise<void>((resolve) => (release = resolve))
    await new Promise<void>((locked) => {
      holding = database.system(async (tx) => {
        const text = 'select from vault_credentials where id = $1 for update'
        await tx.query({ name: 'test.hold_credential', text, values: [credentialId] })
        locked()
        await released
      })
    })
    upstream.answer(null)
    return upstream.issue('rt-0')
  })
  const asked = ask('/v1/proxy', 'application/json', call, { authorization: `Bearer ${delegated}` })
  const failed = t.throwsAsync(asked)
  const row = () =>
    sql<{ answer: Buffer | null; token: unknown }>(database)`
      select answer, token from vault_managed_tokens where credential_id = ${credentialId}`
  await until('the answer is kept', async () => (await row())[0]?.answer != null)
  const [kept] = await row()
  t.is(kept!.token, null)
  t.false(kept!.answer!.toString('latin1').includes('rt-1'), 'it is sealed')
  await kill()
  await failed
  release()
  await holding
  await sql(database)`
    update vault_managed_tokens set refreshing_until = now() where credential_id = ${credentialId}`

  const again = () => api.post('/v1/proxy', delegated, JSON.parse(call) as object).gives(200)
  await again()
  t.is(upstream.tokenRequests.length, 1, 'the upstream was not asked again')
  t.is(upstream.apiRequests[0]!.authorization, 'Bearer at-1')
  t.is((await row())[0]!.answer, null)
  await sql(database)`
    update vault_managed_tokens set expires_at = now() where credential_id = ${credentialId}`
  await again()
  t.is(upstream.tokenRequests[1]!.form['refresh_token'], 'rt-1')
  t.is(upstream.apiRequests[1]!.authorization, 'Bearer at-2')
})
