/** Graceful shutdown of the service during a call of `svc run`. */
import test from 'ava'
import { until } from '../../support/service/watch.js'
import { ownEgressHouse, settingOf, UPSTREAM_NAME } from '../../support/vault/egress.js'
import { svcRunOf } from '../../support/vault/svc-run.js'

test('a running response completes during a shutdown', async (t) => {
  const resources = await ownEgressHouse({ transport: 'tls_h2_only' })
  t.teardown(() => resources.end())
  const { api, running, upstream } = resources
  const setting = await settingOf(resources)
  const svcRun = await svcRunOf(resources, { delegated: setting.direct })
  t.teardown(() => svcRun.end())
  const access = ['--url', running.baseUrl, '--token-file', svcRun.tokenFile]
  const named = ['--credential', `${UPSTREAM_NAME}=${setting.credentialId}`]
  const command = ['curl', '-sSN', `${upstream.origin}/pause/held`]
  const ran = svcRun.begin(['run', ...access, ...named, '--', ...command])
  await ran.printed(/before/)
  const stopped = running.service.stop()
  const isStopping = () =>
    api.get('/health/ready').then(
      ({ status }) => status !== 200,
      () => true,
    )
  await until('the service is stopping', 30_000, isStopping)
  upstream.releaseEvents()
  await stopped
  const { code, out, err } = await ran.ended
  t.is(out, 'before data: now\n\n', err)
  t.is(code, 0)
})
