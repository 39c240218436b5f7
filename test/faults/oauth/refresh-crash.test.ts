/**
 * A process is killed (SIGKILL) at any moment of a refresh: the upstream's grace period compensates for
 * a lost response, and nothing else is lost.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { request } from 'undici'
import { svcBeside } from '../../flows/vault/command.js'
import { UPSTREAM_CERT, UPSTREAM_NAME } from '../../actors/vault/egress/loopback-tls.js'
import { egressHouse, settingOf } from '../../support/vault/egress.js'
import { sql } from '../../support/storage/sql.js'
import { freePort } from '../../support/service.js'
import { tokenUpstream } from '../../support/vault/token-upstream.js'

const ACCESS = 'urn:ietf:params:oauth:token-type:access_token'

test('a process killed during a refresh loses nothing that the upstream returns again', async (t) => {
  t.timeout(240_000)
  // Another process joins its deployment, and dies: no other file may share it.
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
  const { db, issuer } = resources.running
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
  const port = String(await freePort())
  const doomed = await svcBeside(t, resources.running, {
    SVC_CONFIG_FILE: config,
    SVC_SERVER__PORT: port,
    SVC_VAULT__EGRESS_ALLOW_PRIVATE_NETWORKS: 'true',
    SVC_VAULT__EGRESS_ALLOW_NON_STANDARD_PORTS: 'true',
    SVC_VAULT__EGRESS_CA_PEM_PATH: ca,
  })
  // The upstream has rotated, and the process dies before it gets the response.
  let given = 0
  upstream.answer(async ({ form: asked }) => {
    given += 1
    if (given === 1) {
      doomed.child.kill('SIGKILL')
      await doomed.ended()
    }
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
  await t.throwsAsync(
    request(`http://127.0.0.1:${port}/oauth/token`, {
      method: 'POST',
      headers: {
        host: new URL(issuer).host,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams(form).toString(),
    }),
  )
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
